//! The code of a tape: which register holds which value, and a loop over vectors of elements.
//!
//! Promises that every result is computed once for each vector and kept in a register until its last use. Memory that is read once,
//! as a last operand, is read by the instruction that uses it.

use super::encode::{self, Assembler, Mask, Place, RAX, RSI, Width};
use super::{Instruction, Tape, Value, Verb};

/// Vector registers.
pub(super) const REGISTERS: usize = 32;

/// Bytes of a full one.
pub(super) const VECTOR_BYTES: usize = 64;

/// General registers that hold the addresses of operands.
pub(super) const POINTERS: [u8; 12] = [1, 2, 8, 9, 10, 11, 3, 5, 12, 13, 14, 15];

/// Those of [`POINTERS`] before this one may be changed without asking.
const FREE_POINTERS: usize = 6;

/// Vector registers that are taken.
#[derive(Default)]
pub(super) struct Registers {
    taken: u128,
    /// Most that were taken at a time.
    pub(super) most: usize,
}

impl Registers {
    pub(super) fn take(&mut self) -> u8 {
        let register = self.taken.trailing_ones().min(u128::BITS - 1);
        self.taken |= 1 << register;
        self.most = self.most.max(self.taken.count_ones() as usize);
        register as u8
    }

    pub(super) fn give(&mut self, register: u8) {
        self.taken &= !(1 << register);
    }
}

/// When values are used for the last time, by the number of the instruction.
struct Uses {
    of_results: Vec<Option<usize>>,
    of_memory: Vec<Option<usize>>,
    /// Memory that needs a register: read more than once, or as a first operand.
    loaded: Vec<bool>,
}

impl Uses {
    fn new(tape: &Tape, kept: &[Value]) -> Uses {
        let operands = tape.repeats.len();
        let mut uses = Uses {
            of_results: vec![None; tape.instructions.len()],
            of_memory: vec![None; operands],
            loaded: vec![false; operands],
        };
        for (number, instruction) in tape.instructions.iter().enumerate() {
            let values = sources(instruction);
            for (place, value) in values.iter().enumerate() {
                let needs_register = place + 1 < values.len();
                uses.note(*value, number, needs_register);
            }
        }
        for value in kept {
            uses.note(*value, usize::MAX, true);
        }
        uses
    }

    fn note(&mut self, value: Value, number: usize, needs_register: bool) {
        match value {
            Value::Result(result) => self.of_results[result] = Some(number),
            Value::Memory(operand) => {
                self.loaded[operand] |= needs_register || self.of_memory[operand].is_some();
                self.of_memory[operand] = Some(number);
            }
            Value::Constant(_) => {}
        }
    }

    fn ends(&self, value: Value, number: usize) -> bool {
        match value {
            Value::Result(result) => self.of_results[result] == Some(number),
            Value::Memory(operand) => self.of_memory[operand] == Some(number),
            Value::Constant(_) => false,
        }
    }
}

/// What an instruction reads: the first operand where it has two, and the last.
fn sources(instruction: &Instruction) -> &[Value] {
    // As a pair in memory order, so that both forms are a slice.
    match instruction.verb {
        Verb::Add | Verb::Subtract | Verb::Multiply | Verb::Divide => &instruction.operands,
        Verb::Sqrt | Verb::Negative | Verb::Absolute | Verb::Copy => &instruction.operands[1..],
    }
}

/// The sign bit of a number.
fn sign_bit(item_bytes: usize) -> u64 {
    1 << (8 * item_bytes - 1)
}

/// The constants that a tape's code keeps in registers.
pub(super) fn constants(tape: &Tape) -> Vec<Value> {
    let mut found = Vec::new();
    let signs = tape.instructions.iter().filter(|i| matches!(i.verb, Verb::Negative | Verb::Absolute));
    let signs = signs.map(|_| Value::Constant(sign_bit(tape.item_bytes)));
    let operands = tape.instructions.iter().flat_map(|instruction| instruction.operands);
    for value in operands.filter(|value| matches!(value, Value::Constant(_))).chain(signs) {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// A tape's instructions over one vector.
pub(super) struct Body<'a> {
    tape: &'a Tape,
    width: Width,
    uses: Uses,
    kept: &'a [Value],
}

impl<'a> Body<'a> {
    /// The values in `kept` are wanted afterwards.
    pub(super) fn new(tape: &'a Tape, width: Width, kept: &'a [Value]) -> Body<'a> {
        Body { tape, width, uses: Uses::new(tape, kept), kept }
    }

    /// Appends the instructions. `held` are values that are in registers already and stay there; `place` gives the memory of
    /// an operand. Returns the registers of the wanted values.
    pub(super) fn emit(
        &self,
        assembler: &mut Assembler,
        registers: &mut Registers,
        held: &[(Value, u8)],
        mask: Mask,
        place: &dyn Fn(usize) -> Place,
    ) -> Vec<u8> {
        let item_bytes = self.tape.item_bytes;
        let mut current: Vec<(Value, u8)> = Vec::new();
        let find = |current: &[(Value, u8)], value: Value| {
            held.iter().chain(current).find(|(known, _)| *known == value).map(|(_, register)| *register)
        };
        for (number, instruction) in self.tape.instructions.iter().enumerate() {
            let values = sources(instruction);
            let mut passing = None;
            let mut operands = [Place::Register(0); 2];
            for (index, value) in values.iter().enumerate() {
                let is_last = index + 1 == values.len();
                operands[index] = match (find(&current, *value), *value) {
                    (Some(register), _) => Place::Register(register),
                    (None, Value::Memory(operand)) if is_last && !self.uses.loaded[operand] => place(operand),
                    (None, Value::Memory(operand)) if is_last && self.tape.repeats[operand] => place(operand),
                    (None, Value::Memory(operand)) => {
                        let register = registers.take();
                        self.load(assembler, mask, register, operand, place);
                        if self.tape.repeats[operand] {
                            passing = Some(register);
                        } else {
                            current.push((*value, register));
                        }
                        Place::Register(register)
                    }
                    (None, Value::Result(_) | Value::Constant(_)) => unreachable!("results are made before their use"),
                };
            }
            let ended: Vec<(Value, u8)> =
                current.iter().copied().filter(|(value, _)| self.uses.ends(*value, number)).collect();
            current.retain(|entry| !ended.contains(entry));
            ended.iter().for_each(|(_, register)| registers.give(*register));
            passing.into_iter().for_each(|register| registers.give(register));
            let target = registers.take();
            let width = self.width;
            let first = match operands[0] {
                Place::Register(register) => register,
                Place::Memory { .. } => 0,
            };
            let sign = || find(&current, Value::Constant(sign_bit(item_bytes))).unwrap_or_default();
            let (opcode, first, last) = match instruction.verb {
                Verb::Add => (encode::add(item_bytes, width), first, operands[1]),
                Verb::Subtract => (encode::subtract(item_bytes, width), first, operands[1]),
                Verb::Multiply => (encode::multiply(item_bytes, width), first, operands[1]),
                Verb::Divide => (encode::divide(item_bytes, width), first, operands[1]),
                Verb::Sqrt => (encode::sqrt(item_bytes, width), 0, operands[0]),
                Verb::Negative => (encode::xor(item_bytes, width), sign(), operands[0]),
                Verb::Absolute => (encode::and_not(item_bytes, width), sign(), operands[0]),
                Verb::Copy => match operands[0] {
                    Place::Memory { repeats: true, .. } => (encode::repeat(item_bytes), 0, plain(operands[0])),
                    Place::Memory { .. } | Place::Register(_) => (encode::load(item_bytes, width), 0, operands[0]),
                },
            };
            assembler.vector(opcode, width, mask, target, first, last);
            if let Some(operand) = instruction.store {
                let stored = if mask == Mask::All { Mask::All } else { Mask::RestStored };
                assembler.vector(encode::store(item_bytes, width), width, stored, target, 0, place(operand));
            }
            if self.uses.of_results[number].is_some() {
                current.push((Value::Result(number), target));
            } else {
                registers.give(target);
            }
        }
        let mut results = Vec::new();
        for value in self.kept {
            let register = find(&current, *value).unwrap_or_else(|| {
                let register = registers.take();
                if let Value::Memory(operand) = *value {
                    self.load(assembler, mask, register, operand, place);
                }
                current.push((*value, register));
                register
            });
            results.push(register);
        }
        results
    }

    fn load(
        &self,
        assembler: &mut Assembler,
        mask: Mask,
        register: u8,
        operand: usize,
        place: &dyn Fn(usize) -> Place,
    ) {
        let (item_bytes, width) = (self.tape.item_bytes, self.width);
        if self.tape.repeats[operand] {
            assembler.vector(encode::repeat(item_bytes), width, mask, register, 0, plain(place(operand)));
        } else {
            assembler.vector(encode::load(item_bytes, width), width, mask, register, 0, place(operand));
        }
    }
}

/// A place for an instruction that repeats the element by itself.
pub(super) fn plain(place: Place) -> Place {
    match place {
        Place::Memory { base, indexed, displacement, .. } => {
            Place::Memory { base, indexed, displacement, repeats: false }
        }
        Place::Register(_) => place,
    }
}

/// Loads the constants into registers.
pub(super) fn hold_constants(
    assembler: &mut Assembler,
    registers: &mut Registers,
    item_bytes: usize,
    constants: &[Value],
) -> Vec<(Value, u8)> {
    let mut held = Vec::new();
    for value in constants {
        let Value::Constant(bits) = *value else { continue };
        let register = registers.take();
        assembler.set_rax(bits);
        let general = Place::Register(RAX);
        assembler.vector(encode::repeat_general(item_bytes), Width::Full, Mask::All, register, 0, general);
        held.push((*value, register));
    }
    held
}

/// Saves the general registers among the first `count` of [`POINTERS`] that belong to the caller.
pub(super) fn save(assembler: &mut Assembler, count: usize) {
    POINTERS[..count].iter().skip(FREE_POINTERS).for_each(|register| assembler.push(*register));
}

/// Undoes [`save`].
pub(super) fn restore(assembler: &mut Assembler, count: usize) {
    POINTERS[..count].iter().skip(FREE_POINTERS).rev().for_each(|register| assembler.pop(*register));
}

/// The most registers that a tape's code needs: constants, and values that live at a time.
pub(super) fn pressure(tape: &Tape) -> usize {
    let mut registers = Registers::default();
    let held: Vec<(Value, u8)> = constants(tape).into_iter().map(|value| (value, registers.take())).collect();
    let place = |_| Place::Register(0);
    Body::new(tape, Width::Full, &[]).emit(&mut Assembler::default(), &mut registers, &held, Mask::All, &place);
    registers.most
}

/// The operands of a tape that repeat and for which a register is left, and how many others have an address.
fn choose_held(tape: &Tape) -> (Vec<usize>, usize) {
    let spare = REGISTERS.saturating_sub(pressure(tape));
    let repeated = (0..tape.repeats.len()).filter(|operand| tape.repeats[*operand]);
    let held: Vec<usize> = repeated.take(spare).collect();
    let others = tape.repeats.len() - held.len();
    (held, others)
}

/// Whether a tape has code.
pub(super) fn fits(tape: &Tape) -> bool {
    pressure(tape) <= REGISTERS && choose_held(tape).1 <= POINTERS.len()
}

/// The code of a tape: a [`super::TapeFunction`].
pub(super) fn tape(tape: &Tape) -> Option<Vec<u8>> {
    if !fits(tape) {
        return None;
    }
    let (repeated, others) = choose_held(tape);
    let mut assembler = Assembler::default();
    let mut registers = Registers::default();
    save(&mut assembler, others);
    assembler.set_mask(false);
    let mut held = hold_constants(&mut assembler, &mut registers, tape.item_bytes, &constants(tape));
    for operand in &repeated {
        let register = registers.take();
        assembler.load_pointer(RAX, operand * size_of::<usize>());
        let element = Place::Memory { base: RAX, indexed: false, displacement: 0, repeats: false };
        assembler.vector(encode::repeat(tape.item_bytes), Width::Full, Mask::All, register, 0, element);
        held.push((Value::Memory(*operand), register));
    }
    let mut pointers = POINTERS.into_iter();
    let bases: Vec<u8> = (0..tape.repeats.len())
        .map(|operand| if repeated.contains(&operand) { None } else { pointers.next() }.unwrap_or_default())
        .collect();
    for operand in (0..tape.repeats.len()).filter(|operand| !repeated.contains(operand)) {
        assembler.load_pointer(bases[operand], operand * size_of::<usize>());
    }
    let place = |operand: usize| {
        let repeats = tape.repeats[operand];
        Place::Memory { base: bases[operand], indexed: !repeats, displacement: 0, repeats }
    };
    let body = Body::new(tape, Width::Full, &[]);
    assembler.set_number(RAX, 0);
    assembler.test(RSI);
    let without_whole = assembler.jump_ahead_if_zero();
    let start = assembler.bytes.len();
    body.emit(&mut assembler, &mut registers, &held, Mask::All, &place);
    assembler.add_number(RAX, VECTOR_BYTES as i32);
    assembler.compare_rax_rsi();
    assembler.jump_back(start, true);
    assembler.land(without_whole);
    assembler.test_mask();
    let without_rest = assembler.jump_ahead_if_zero();
    body.emit(&mut assembler, &mut registers, &held, Mask::Rest, &place);
    assembler.land(without_rest);
    restore(&mut assembler, others);
    assembler.finish();
    (registers.most <= REGISTERS).then_some(assembler.bytes)
}
