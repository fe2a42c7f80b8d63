//! Steps on the elements that a mask selects: which of them run together, and where their operands are packed.
//!
//! Neighbouring steps with one mask become a stretch. For each block the places of the selected elements are listed once: with
//! none the stretch is passed over, with all of them its loops run on the operands where they are, else the selected elements
//! of what they read are packed side by side, the loops run on these, and results go back to their places. Loops meet no
//! other elements, so that only the selected ones raise events. Which elements a block has is `walk`'s.

#![expect(unsafe_code, reason = "moves elements between computed addresses")]

use smallvec::SmallVec;

use super::nest::{Base, Nest};
use super::plan::{Call, Operand, Operation, Pointer};
use super::registers::{Register, look_at_pointers};
use crate::loops;

/// Where a stretch begins.
#[derive(Clone, Debug)]
pub(super) struct Enter {
    pub(super) mask: Operand,
    /// Register for the places of the selected elements within the block.
    pub(super) places: Pointer,
    /// The first operation behind the stretch.
    pub(super) until: usize,
    /// Whether all operands lie side by side in the block, as packed ones do: some loops give other bits where they do not.
    pub(super) is_dense: bool,
}

/// A loop call of a stretch.
#[derive(Clone, Debug)]
pub(super) struct Packed {
    /// Where all elements are selected.
    pub(super) whole: Call,
    /// Else: pointers and strides of the packed operands.
    pub(super) pointers: SmallVec<[Pointer; 4]>,
    pub(super) strides: SmallVec<[isize; 4]>,
}

/// Selected elements on their way between the block and a register of packed ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    /// Elements of the block.
    pub(super) block: Operand,
    /// Selected elements side by side, or one for all.
    pub(super) packed: Operand,
    pub(super) places: Pointer,
    pub(super) item_bytes: usize,
}

/// Bytes of an element's place within its block.
pub(super) const PLACE_BYTES: usize = size_of::<u32>();

/// Forms the stretches of a lowered pass.
pub(super) fn pack(operations: Vec<Operation>, nest: &Nest, registers: &mut Vec<Register>) -> Vec<Operation> {
    if !operations.iter().any(|operation| matches!(operation, Operation::Masked(..))) {
        return operations;
    }
    let first_register = nest.walks.len();
    let stretches = number_stretches(&operations, nest);
    let private = find_private(&operations, &stretches, first_register, registers.len());
    let mut packing = Packing { nest, registers, private, known: Vec::new(), places: 0, packed: Vec::new() };
    let mut open: Option<(usize, usize)> = None;
    for (operation, stretch) in operations.into_iter().zip(stretches) {
        if open.is_some_and(|(number, _)| Some(number) != stretch) {
            packing.close(open.take());
        }
        let Operation::Masked(mask, call) = operation else {
            packing.packed.push(operation);
            continue;
        };
        if open.is_none() {
            open = stretch.map(|number| (number, packing.enter(mask)));
        }
        packing.call(call);
    }
    packing.close(open);
    packing.packed
}

/// For each operation the stretch that it belongs to: neighbours with one mask, which none of them changes.
fn number_stretches(operations: &[Operation], nest: &Nest) -> Vec<Option<usize>> {
    let mut numbers = Vec::with_capacity(operations.len());
    let mut open: Option<Operand> = None;
    let mut count = 0;
    for operation in operations {
        let Some((mask, call)) = operation.masked() else {
            open = None;
            numbers.push(None);
            continue;
        };
        let continues = open.is_some_and(|operand| operand.pointer == mask.pointer && operand.stride == mask.stride);
        count += usize::from(!continues);
        numbers.push(Some(count));
        let changes = call.pointers[call.inputs..].iter().any(|output| shares(*output, mask.pointer, nest));
        open = (!changes).then_some(*mask);
    }
    numbers
}

/// Whether writing at one pointer changes what is at another.
fn shares(one: Pointer, other: Pointer, nest: &Nest) -> bool {
    match (nest.walks.get(one), nest.walks.get(other)) {
        (Some(one), Some(other)) => one.base == other.base && !matches!(one.base, Base::Index),
        _ => one == other,
    }
}

/// For each register whether only one stretch touches it, which writes it before it reads it.
fn find_private(
    operations: &[Operation],
    stretches: &[Option<usize>],
    first_register: usize,
    registers: usize,
) -> Vec<bool> {
    let mut owner: Vec<Option<Option<usize>>> = vec![None; registers];
    let mut private = vec![true; registers];
    for (operation, stretch) in operations.iter().zip(stretches) {
        let reads = operation.masked().map_or(&[][..], |(_, call)| &call.pointers[..call.inputs]);
        look_at_pointers(operation, |pointer| {
            let Some(register) = pointer.checked_sub(first_register) else { return };
            let is_first = owner[register].is_none();
            let known = *owner[register].get_or_insert(*stretch);
            private[register] &= stretch.is_some() && known == *stretch && !(is_first && reads.contains(pointer));
        });
        if let Some((mask, _)) = operation.masked()
            && let Some(register) = mask.pointer.checked_sub(first_register)
        {
            private[register] = false;
        }
    }
    private
}

/// Stretches in the making.
struct Packing<'a> {
    nest: &'a Nest,
    registers: &'a mut Vec<Register>,
    private: Vec<bool>,
    /// Operands whose selected elements a register holds.
    known: Vec<(Operand, Pointer)>,
    /// Of the open stretch.
    places: Pointer,
    packed: Vec<Operation>,
}

impl Packing<'_> {
    fn register(&mut self, item_bytes: usize) -> Pointer {
        self.registers.push(Register { item_bytes, pinned: false });
        self.nest.walks.len() + self.registers.len() - 1
    }

    fn item_bytes(&self, pointer: Pointer) -> usize {
        match pointer.checked_sub(self.nest.walks.len()) {
            Some(register) => self.registers[register].item_bytes,
            None => self.nest.walks[pointer].item_bytes,
        }
    }

    fn is_private(&self, pointer: Pointer) -> bool {
        let register = pointer.checked_sub(self.nest.walks.len());
        register.is_some_and(|register| self.private.get(register).copied().unwrap_or(true))
    }

    /// Opens a stretch; where it begins.
    fn enter(&mut self, mask: Operand) -> usize {
        self.known.clear();
        self.places = self.register(PLACE_BYTES);
        self.packed.push(Operation::Enter(Enter { mask, places: self.places, until: 0, is_dense: true }));
        self.packed.len() - 1
    }

    fn close(&mut self, open: Option<(usize, usize)>) {
        let behind = self.packed.len();
        if let Some(Operation::Enter(enter)) = open.and_then(|(_, start)| self.packed.get_mut(start)) {
            enter.until = behind;
        }
        let is_dense = |operation: &Operation| match operation {
            Operation::Gather(moved) | Operation::Scatter(moved) => moved.block.stride == moved.packed.stride,
            Operation::Load(_)
            | Operation::Store(_)
            | Operation::Call(_)
            | Operation::Masked(..)
            | Operation::Enter(_)
            | Operation::Packed(_)
            | Operation::Chain(_)
            | Operation::Woven(_)
            | Operation::Index { .. }
            | Operation::Fold(..)
            | Operation::Accumulate { .. } => true,
        };
        let Some((_, start)) = open else { return };
        let all = self.packed[start..].iter().all(is_dense);
        if let Operation::Enter(enter) = &mut self.packed[start] {
            enter.is_dense = all;
        }
    }

    /// The selected elements of an operand that is read.
    fn packed_input(&mut self, block: Operand) -> Operand {
        if block.stride == 0 || self.is_private(block.pointer) {
            return block;
        }
        let item_bytes = self.item_bytes(block.pointer);
        let stride = item_bytes.cast_signed();
        let same = |known: &Operand| known.pointer == block.pointer && known.stride == block.stride;
        if let Some((_, pointer)) = self.known.iter().find(|(known, _)| same(known)) {
            return Operand { pointer: *pointer, stride };
        }
        let packed = Operand { pointer: self.register(item_bytes), stride };
        self.packed.push(Operation::Gather(Moved { block, packed, places: self.places, item_bytes }));
        self.known.push((block, packed.pointer));
        packed
    }

    fn call(&mut self, call: Call) {
        let operands = call.pointers.iter().zip(&call.strides);
        let operands: SmallVec<[Operand; 4]> =
            operands.map(|(pointer, stride)| Operand { pointer: *pointer, stride: *stride }).collect();
        let (inputs, outputs) = operands.split_at(call.inputs);
        let mut packed: SmallVec<[Operand; 4]> = inputs.iter().map(|input| self.packed_input(*input)).collect();
        let mut scatters: SmallVec<[Moved; 2]> = SmallVec::new();
        for output in outputs {
            if self.is_private(output.pointer) {
                packed.push(*output);
                continue;
            }
            let item_bytes = self.item_bytes(output.pointer);
            let side = Operand { pointer: self.register(item_bytes), stride: item_bytes.cast_signed() };
            packed.push(side);
            scatters.push(Moved { block: *output, packed: side, places: self.places, item_bytes });
        }
        self.packed.push(Operation::Packed(Packed {
            pointers: packed.iter().map(|operand| operand.pointer).collect(),
            strides: packed.iter().map(|operand| operand.stride).collect(),
            whole: call,
        }));
        for moved in scatters {
            self.known.retain(|(known, _)| !shares(moved.block.pointer, known.pointer, self.nest));
            self.known.push((moved.block, moved.packed.pointer));
            self.packed.push(Operation::Scatter(moved));
        }
    }
}

/// Lists the places of the bytes that are not 0, if they are all only where `lists_all`; how many there are.
///
/// # Safety
/// There must be `count` bytes, and room for as many places and [`ROOM`] more bytes.
pub(super) unsafe fn find(mask: *const u8, stride: isize, count: usize, places: *mut u32, lists_all: bool) -> usize {
    // SAFETY: the caller's.
    unsafe {
        match stride {
            0 if count == 0 || *mask == 0 => 0,
            1 => find_dense(std::slice::from_raw_parts(mask, count), places, lists_all),
            _ => {
                let mut found = 0;
                for place in 0..count {
                    *places.add(found) = place as u32;
                    found += usize::from(*mask.offset(stride * place.cast_signed()) != 0);
                }
                found
            }
        }
    }
}

/// Bytes that [`find`] may write behind the places.
pub(super) const ROOM: usize = 64;

unsafe fn find_dense(mask: &[u8], places: *mut u32, lists_all: bool) -> usize {
    // All and nothing need no list.
    let found = loops::count_set(mask);
    if found == 0 || (found == mask.len() && !lists_all) {
        return found;
    }
    // SAFETY: the caller's.
    unsafe { loops::places_of(mask, places) };
    found
}

/// Packs the elements of a block at some places.
///
/// # Safety
/// The places must be the block's, in order, and the packed side have room for as many elements.
pub(super) unsafe fn gather(block: (*const u8, isize), places: &[u32], packed: *mut u8, item_bytes: usize) {
    // SAFETY: the caller's.
    unsafe {
        match item_bytes {
            1 => gather_items::<u8>(block, places, packed),
            2 => gather_items::<u16>(block, places, packed),
            4 => gather_items::<u32>(block, places, packed),
            8 => gather_items::<u64>(block, places, packed),
            16 => gather_items::<[u64; 2]>(block, places, packed),
            _ => {
                for (index, place) in places.iter().enumerate() {
                    let from = block.0.offset(block.1 * *place as isize);
                    from.copy_to_nonoverlapping(packed.add(index * item_bytes), item_bytes);
                }
            }
        }
    }
}

unsafe fn gather_items<T: Copy>((block, stride): (*const u8, isize), places: &[u32], packed: *mut u8) {
    let packed = packed.cast::<T>();
    // SAFETY: the caller's.
    unsafe {
        if stride == size_of::<T>().cast_signed() {
            let block = block.cast::<T>();
            for (index, place) in places.iter().enumerate() {
                packed.add(index).write_unaligned(block.add(*place as usize).read_unaligned());
            }
            return;
        }
        for (index, place) in places.iter().enumerate() {
            packed.add(index).write_unaligned(block.offset(stride * *place as isize).cast::<T>().read_unaligned());
        }
    }
}

/// Puts packed elements to their places in a block.
///
/// # Safety
/// As for [`gather`].
pub(super) unsafe fn scatter(packed: *const u8, places: &[u32], block: (*mut u8, isize), item_bytes: usize) {
    // SAFETY: the caller's.
    unsafe {
        match item_bytes {
            1 => scatter_items::<u8>(packed, places, block),
            2 => scatter_items::<u16>(packed, places, block),
            4 => scatter_items::<u32>(packed, places, block),
            8 => scatter_items::<u64>(packed, places, block),
            16 => scatter_items::<[u64; 2]>(packed, places, block),
            _ => {
                for (index, place) in places.iter().enumerate() {
                    let to = block.0.offset(block.1 * *place as isize);
                    packed.add(index * item_bytes).copy_to_nonoverlapping(to, item_bytes);
                }
            }
        }
    }
}

unsafe fn scatter_items<T: Copy>(packed: *const u8, places: &[u32], (block, stride): (*mut u8, isize)) {
    let packed = packed.cast::<T>();
    // SAFETY: the caller's.
    unsafe {
        for (index, place) in places.iter().enumerate() {
            let to = block.offset(stride * *place as isize).cast::<T>();
            to.write_unaligned(packed.add(index).read_unaligned());
        }
    }
}
