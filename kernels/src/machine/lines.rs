//! The code of lines: loops over the outer and the middle axis around a tape that is written out for a whole line.
//!
//! Promises each line's sum in the order of NumPy's leaf: eight accumulators (the lanes of a register), joined pairwise, then the
//! elements left over one by one.

use super::emit::{self, Body, POINTERS, REGISTERS, Registers};
use super::encode::{self, Assembler, Mask, Place, RDI, RSI, Width};
use super::{LONGEST_LINE, Lines, Value};

/// Accumulators of a leaf.
const LANES: usize = 8;

/// Most instructions of all the lines of an outer position that are written out one after the other.
const WRITTEN_OUT: usize = 400;

/// Instructions that a line's sum takes about.
const SUM_INSTRUCTIONS: usize = 12;

/// The code of lines: a [`super::LinesFunction`].
pub(super) fn lines(shape: &Lines) -> Option<Vec<u8>> {
    let fits = |stride: isize| i32::try_from(stride).is_ok_and(|stride| stride.unsigned_abs() < 1 << 24);
    let is_small = shape.middle < 1 << 24
        && shape.run <= LONGEST_LINE
        && shape.tape.repeats.len() <= POINTERS.len()
        && shape.middle_strides.iter().chain(&shape.outer_strides).all(|stride| fits(*stride))
        && shape.middle_strides.iter().all(|stride| fits(stride.saturating_mul(shape.middle.cast_signed())));
    if !is_small {
        return None;
    }
    // With what does not change along the middle axis in registers, or without.
    [true, false].into_iter().find_map(|holds| Writer::new(shape).write(holds))
}

struct Writer<'a> {
    shape: &'a Lines,
    assembler: Assembler,
    registers: Registers,
    width: Width,
}

impl<'a> Writer<'a> {
    fn new(shape: &'a Lines) -> Writer<'a> {
        let width = if shape.tape.item_bytes == 8 { Width::Full } else { Width::Half };
        Writer { shape, assembler: Assembler::default(), registers: Registers::default(), width }
    }

    fn chunks(&self) -> usize {
        self.shape.run.div_ceil(LANES)
    }

    /// The mask of a chunk.
    fn mask(&self, chunk: usize) -> Mask {
        if (chunk + 1) * LANES > self.shape.run { Mask::Rest } else { Mask::All }
    }

    fn place(&self, operand: usize, line: usize, chunk: usize) -> Place {
        let repeats = self.shape.tape.repeats[operand];
        let within = if repeats { 0 } else { chunk * LANES * self.shape.tape.item_bytes };
        let displacement = self.shape.middle_strides[operand] * line.cast_signed() + within.cast_signed();
        Place::Memory { base: POINTERS[operand], indexed: false, displacement: displacement as i32, repeats }
    }

    fn write(mut self, holds: bool) -> Option<Vec<u8>> {
        let shape = self.shape;
        let operands = shape.tape.repeats.len();
        let is_read = |operand: usize| {
            let value = Value::Memory(operand);
            shape.tape.instructions.iter().any(|instruction| instruction.operands.contains(&value))
                || shape.sums.iter().any(|sum| sum.input == value)
        };
        emit::save(&mut self.assembler, operands);
        self.assembler.set_rax((1 << (shape.run % LANES)) - 1);
        self.assembler.set_mask(true);
        let mut constants = emit::constants(&shape.tape);
        for value in shape.sums.iter().flat_map(|sum| [Value::Constant(sum.seed), sum.input]) {
            if matches!(value, Value::Constant(_)) && !constants.contains(&value) {
                constants.push(value);
            }
        }
        let item_bytes = shape.tape.item_bytes;
        let constants = emit::hold_constants(&mut self.assembler, &mut self.registers, item_bytes, &constants);
        for (operand, base) in POINTERS.iter().enumerate().take(operands) {
            self.assembler.load_pointer(*base, operand * size_of::<usize>());
        }
        let still = |operand: &usize| holds && shape.middle_strides[*operand] == 0 && is_read(*operand);
        let held_operands: Vec<usize> = (0..operands).filter(still).collect();
        // For each chunk the registers of what does not change along the middle axis.
        let mut held: Vec<Vec<(Value, u8)>> = vec![constants; self.chunks()];
        for operand in &held_operands {
            let mut shared = None;
            for chunk_held in &mut held {
                let register = match shared {
                    Some(register) if shape.tape.repeats[*operand] => register,
                    _ => self.registers.take(),
                };
                shared = Some(register);
                chunk_held.push((Value::Memory(*operand), register));
            }
        }
        self.assembler.test(RSI);
        let without_lines = self.assembler.jump_ahead_if_zero();
        let start = self.assembler.bytes.len();
        self.load_held(&held_operands, &held);
        let line_instructions = self.chunks() * shape.tape.instructions.len() + shape.sums.len() * SUM_INSTRUCTIONS;
        if shape.middle * line_instructions <= WRITTEN_OUT {
            for line in 0..shape.middle {
                self.line(line, &held);
            }
            self.advance(|operand| shape.outer_strides[operand]);
        } else {
            self.assembler.set_number(RDI, shape.middle as i32);
            let start = self.assembler.bytes.len();
            self.line(0, &held);
            self.advance(|operand| shape.middle_strides[operand]);
            self.assembler.add_number(RDI, -1);
            self.assembler.jump_back(start, false);
            let middle = shape.middle.cast_signed();
            self.advance(|operand| shape.outer_strides[operand] - middle * shape.middle_strides[operand]);
        }
        self.assembler.add_number(RSI, -1);
        self.assembler.jump_back(start, false);
        self.assembler.land(without_lines);
        emit::restore(&mut self.assembler, operands);
        self.assembler.finish();
        (self.registers.most <= REGISTERS).then_some(self.assembler.bytes)
    }

    fn advance(&mut self, stride: impl Fn(usize) -> isize) {
        for (operand, base) in POINTERS.iter().enumerate().take(self.shape.tape.repeats.len()) {
            if stride(operand) != 0 {
                self.assembler.add_number(*base, stride(operand) as i32);
            }
        }
    }

    fn load_held(&mut self, operands: &[usize], held: &[Vec<(Value, u8)>]) {
        let item_bytes = self.shape.tape.item_bytes;
        for operand in operands {
            for (chunk, chunk_held) in held.iter().enumerate() {
                let found = chunk_held.iter().find(|(value, _)| *value == Value::Memory(*operand));
                let Some((_, register)) = found else { continue };
                let place = self.place(*operand, 0, chunk);
                if !self.shape.tape.repeats[*operand] {
                    let (load, mask) = (encode::load(item_bytes, self.width), self.mask(chunk));
                    self.assembler.vector(load, self.width, mask, *register, 0, place);
                } else if chunk == 0 {
                    let (repeat, width) = (encode::repeat(item_bytes), self.width);
                    self.assembler.vector(repeat, width, Mask::All, *register, 0, emit::plain(place));
                }
            }
        }
    }

    /// One line.
    fn line(&mut self, line: usize, held: &[Vec<(Value, u8)>]) {
        let shape = self.shape;
        let wanted: Vec<Value> = shape.sums.iter().map(|sum| sum.input).collect();
        let body = Body::new(&shape.tape, self.width, &wanted);
        let add = encode::add(shape.tape.item_bytes, self.width);
        let mut sums: Vec<Option<u8>> = vec![None; shape.sums.len()];
        let mut rests: Vec<Option<u8>> = vec![None; shape.sums.len()];
        for (chunk, chunk_held) in held.iter().enumerate() {
            let mask = self.mask(chunk);
            let mut assembler = std::mem::take(&mut self.assembler);
            let mut registers = std::mem::take(&mut self.registers);
            let place = |operand: usize| self.place(operand, line, chunk);
            let values = body.emit(&mut assembler, &mut registers, chunk_held, mask, &place);
            self.assembler = assembler;
            self.registers = registers;
            for (number, value) in values.iter().enumerate() {
                let value = Place::Register(*value);
                if mask == Mask::All
                    && let Some(sum) = sums[number]
                {
                    self.assembler.vector(add, self.width, Mask::All, sum, sum, value);
                    continue;
                }
                // A copy of its own: the value may be another sum's too, or stay.
                let own = self.registers.take();
                let load = encode::load(shape.tape.item_bytes, self.width);
                self.assembler.vector(load, self.width, Mask::All, own, 0, value);
                if mask == Mask::All { sums[number] = Some(own) } else { rests[number] = Some(own) }
            }
            let mut given: Vec<u8> = Vec::new();
            for value in values {
                if !given.contains(&value) && !chunk_held.iter().any(|(_, register)| *register == value) {
                    self.registers.give(value);
                    given.push(value);
                }
            }
        }
        for (number, sum) in shape.sums.iter().enumerate() {
            let total = self.join(sums[number], rests[number]);
            let scalar = encode::add(shape.tape.item_bytes, Width::First);
            let seed = held[0].iter().find(|(value, _)| *value == Value::Constant(sum.seed));
            let seed = seed.map_or(0, |(_, register)| *register);
            self.assembler.vector(scalar, Width::First, Mask::All, total, seed, Place::Register(total));
            let store = encode::store(shape.tape.item_bytes, Width::First);
            let target = emit::plain(self.place(sum.output, line, 0));
            self.assembler.vector(store, Width::First, Mask::All, total, 0, target);
            self.registers.give(total);
        }
    }

    /// Joins the accumulators and the elements left over: a register whose first element is the sum.
    fn join(&mut self, sums: Option<u8>, rest: Option<u8>) -> u8 {
        let item_bytes = self.shape.tape.item_bytes;
        let (add, scalar) = (encode::add(item_bytes, self.width), encode::add(item_bytes, Width::First));
        let other = self.registers.take();
        let align = encode::align(item_bytes);
        let width = self.width;
        let code = &mut self.assembler;
        if let Some(sum) = sums {
            let (all, half) = (Place::Register(sum), Place::Register(other));
            if item_bytes == 8 {
                code.vector_with(encode::permute_within(8), width, other, 0, all, 0x55);
                code.vector(add, width, Mask::All, sum, sum, half);
                code.vector_with(encode::PERMUTE_DOUBLES, width, other, 0, all, 0x4e);
                code.vector(add, width, Mask::All, sum, sum, half);
                code.vector_with(encode::EXTRACT_HALF, width, sum, 0, half, 1);
            } else {
                code.vector_with(encode::permute_within(4), width, other, 0, all, 0xb1);
                code.vector(add, width, Mask::All, sum, sum, half);
                code.vector_with(encode::permute_within(4), width, other, 0, all, 0x4e);
                code.vector(add, width, Mask::All, sum, sum, half);
                code.vector_with(encode::EXTRACT_QUARTER, width, sum, 0, half, 1);
            }
            code.vector(scalar, Width::First, Mask::All, sum, sum, half);
        }
        let rests = self.shape.run % LANES;
        let total = match (sums, rest) {
            (Some(sum), Some(rest)) => {
                code.vector(scalar, Width::First, Mask::All, sum, sum, Place::Register(rest));
                sum
            }
            (Some(sum), None) => sum,
            (None, Some(rest)) => {
                // A copy: its first element becomes the sum.
                let total = self.registers.take();
                code.vector(encode::load(item_bytes, width), width, Mask::All, total, 0, Place::Register(rest));
                total
            }
            (None, None) => unreachable!("a line has elements"),
        };
        if let Some(rest) = rest {
            for element in 1..rests {
                code.vector_with(align, width, other, rest, Place::Register(rest), element as u8);
                code.vector(scalar, Width::First, Mask::All, total, total, Place::Register(other));
            }
            self.registers.give(rest);
        }
        self.registers.give(other);
        total
    }
}
