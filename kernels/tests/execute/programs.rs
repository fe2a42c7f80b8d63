//! Random programs over doubles, with layouts as slicing, broadcasting and transposing make them.

mod parts;

use legate_kernels::loops as own;
use legate_kernels::program::{
    Access, Arg, Element, Extreme, Float, Loop, Memory, Number, Pass, Program, Reducer, Seed, Split, Step,
};
use smallvec::{SmallVec, smallvec};

use crate::interpreter::element;
use crate::loops;
pub(crate) use parts::parts;

/// A program with its buffers (as elements, so that their bases are aligned).
pub(crate) struct Case {
    pub(crate) program: Program,
    pub(crate) buffers: Vec<Vec<Element>>,
}

/// A small generator of numbers (xorshift64*).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 16) as usize % limit
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// A double with a mantissa that sums round.
    fn double(&mut self) -> f64 {
        let value = self.next() as i64 as f64 / 1e15;
        match self.below(200) {
            0 => 0.0,
            1 => -0.0,
            2 => value * 1e12,
            _ => value,
        }
    }
}

/// A program under construction.
struct Builder<'a> {
    random: &'a mut Random,
    program: Program,
    buffers: Vec<Vec<Element>>,
    inner: SmallVec<[usize; 4]>,
}

impl<'a> Builder<'a> {
    fn new(random: &'a mut Random, rows: usize, inner: SmallVec<[usize; 4]>) -> Builder<'a> {
        let program = Program {
            rows,
            buffers: 0,
            read_soon: Vec::new(),
            slots: Vec::new(),
            constants: Vec::new(),
            totals: Vec::new(),
            flags: 1,
            split: Split::Rows,
            passes: Vec::new(),
        };
        Builder { random, program, buffers: Vec::new(), inner }
    }

    fn finish(mut self, split: Split) -> Case {
        self.program.split = split;
        self.program.buffers = self.buffers.len();
        Case { program: self.program, buffers: self.buffers }
    }

    fn pass(&self) -> Pass {
        Pass { rows: 0..self.program.rows, inner: self.inner.clone(), ..Pass::default() }
    }

    /// An access to a new buffer in a random layout; axes along which `kept` is false (or, for inputs, at random) repeat.
    fn buffer(&mut self, item: usize, kept: &[bool], is_input: bool) -> Access {
        let mut lengths = vec![self.program.rows];
        lengths.extend(self.inner.iter());
        let mut order: Vec<usize> = (0..lengths.len()).collect();
        if self.random.chance(40) {
            for index in (1..order.len()).rev() {
                order.swap(index, self.random.below(index + 1));
            }
        }
        let mut strides = vec![0_isize; lengths.len()];
        let mut size = item;
        let mut offset = 0_isize;
        if is_input && item == 8 && self.random.chance(10) {
            offset = 4;
        }
        let aligned = offset == 0;
        for axis in order.into_iter().rev() {
            if !kept[axis] || (is_input && self.random.chance(25)) {
                continue;
            }
            let step = if self.random.chance(15) { 2 } else { 1 };
            strides[axis] = (size * step) as isize;
            if self.random.chance(10) {
                offset += strides[axis] * (lengths[axis] as isize - 1);
                strides[axis] = -strides[axis];
            }
            size *= step * lengths[axis];
        }
        let mut contents = vec![Element([0; 32]); size / 32 + 2];
        for element in &mut contents {
            for part in 0..4 {
                let value = self.random.double();
                element.0[part * 8..part * 8 + 8].copy_from_slice(&value.to_ne_bytes());
            }
        }
        if offset % 8 != 0 {
            // Doubles where the unaligned access will find them.
            let mut bytes: Vec<u8> = contents.iter().flat_map(|element| element.0).collect();
            bytes.rotate_right(4);
            for (element, chunk) in contents.iter_mut().zip(bytes.chunks(32)) {
                element.0.copy_from_slice(chunk);
            }
        }
        self.buffers.push(contents);
        Access {
            memory: Memory::Buffer(self.buffers.len() - 1),
            offset,
            row_stride: strides[0],
            inner_strides: SmallVec::from_slice(&strides[1..]),
            item_bytes: item,
            aligned,
        }
    }

    fn all(&self) -> Vec<bool> {
        vec![true; self.inner.len() + 1]
    }

    fn input(&mut self) -> Access {
        let kept = self.all();
        self.buffer(8, &kept, true)
    }

    fn output(&mut self) -> Access {
        let kept = self.all();
        self.buffer(8, &kept, false)
    }

    fn constant(&mut self) -> Access {
        let value = self.random.double();
        self.program.constants.push(element(value));
        let memory = Memory::Constant(self.program.constants.len() - 1);
        let inner_strides = SmallVec::from_elem(0, self.inner.len());
        Access { memory, offset: 0, row_stride: 0, inner_strides, item_bytes: 8, aligned: true }
    }

    /// A new slot that holds the first `kept` inner axes, packed.
    fn slot(&mut self, kept: usize) -> Access {
        let mut inner_strides: SmallVec<[isize; 4]> = SmallVec::from_elem(0, self.inner.len());
        let mut size = 8;
        for axis in (0..kept).rev() {
            inner_strides[axis] = size as isize;
            size *= self.inner[axis];
        }
        self.program.slots.push(size);
        let memory = Memory::Slot(self.program.slots.len() - 1);
        Access { memory, offset: 0, row_stride: size as isize, inner_strides, item_bytes: 8, aligned: true }
    }
}

fn shape(random: &mut Random, long: bool) -> (usize, SmallVec<[usize; 4]>) {
    let rows = if random.chance(10) { 1 } else { 1 + random.below(12) };
    let axes = random.below(4);
    let mut inner: SmallVec<[usize; 4]> = (0..axes).map(|_| 1 + random.below(7)).collect();
    if long {
        match inner.last_mut() {
            Some(last) => *last = 60 + random.below(900),
            None => return (1 + random.below(5000), inner),
        }
    }
    while inner.iter().product::<usize>() * rows > 10_000 {
        inner.remove(0);
    }
    (rows, inner)
}

fn add_access(pass: &mut Pass, access: Access) -> Arg {
    pass.accesses.push(access);
    Arg::Access(pass.accesses.len() - 1)
}

fn add_register(pass: &mut Pass, bytes: usize) -> Arg {
    pass.registers.push(bytes);
    Arg::Register(pass.registers.len() - 1)
}

/// Random arithmetic over the operands; the last result.
fn arithmetic(random: &mut Random, pass: &mut Pass, mut operands: Vec<Arg>, steps: usize) -> Arg {
    for _ in 0..steps {
        let a = operands[random.below(operands.len())];
        let b = operands[random.below(operands.len())];
        if random.chance(15) {
            let condition = add_register(pass, 1);
            let chosen = add_register(pass, 8);
            let flags = 0;
            pass.steps.push(Step::Apply {
                kernel: loops::less(),
                inputs: smallvec![a, b],
                outputs: smallvec![condition],
                flags,
            });
            let inputs = smallvec![condition, b, a];
            pass.steps.push(Step::Apply { kernel: own::select(8), inputs, outputs: smallvec![chosen], flags });
            operands.push(chosen);
            continue;
        }
        let lookup = |ufunc, inputs: usize| own::lookup(ufunc, &vec![Number::F64; inputs + 1]).expect("a loop of ours");
        let (kernel, inputs): (Loop, SmallVec<[Arg; 3]>) = match random.below(6) {
            0 => (loops::add(), smallvec![a, b]),
            1 => (loops::subtract(), smallvec![a, b]),
            2 => (lookup("multiply", 2), smallvec![a, b]),
            3 => (lookup("negative", 1), smallvec![a]),
            4 => (lookup("absolute", 1), smallvec![a]),
            _ => (loops::maximum(), smallvec![a, b]),
        };
        if inputs.len() == 2 && random.chance(12) {
            operands.push(masked(random, pass, [a, b], kernel));
            continue;
        }
        let result = add_register(pass, 8);
        pass.steps.push(Step::Apply { kernel, inputs, outputs: smallvec![result], flags: 0 });
        operands.push(result);
    }
    operands[operands.len() - 1]
}

/// A step or two where a comparison holds, the first into a register of their own; the register that has their values there.
fn masked(random: &mut Random, pass: &mut Pass, [a, b]: [Arg; 2], kernel: Loop) -> Arg {
    let (mask, target, between) = (add_register(pass, 1), add_register(pass, 8), add_register(pass, 8));
    let flags = 0;
    // Nothing, everything, or some of it.
    let compared = match random.below(4) {
        0 => smallvec![a, a],
        _ => smallvec![a, b],
    };
    pass.steps.push(Step::Apply { kernel: loops::less(), inputs: compared, outputs: smallvec![mask], flags });
    copy(pass, b, target);
    let mut step = |kernel: &Loop, inputs: [Arg; 2], output: Arg| {
        let (inputs, outputs) = (SmallVec::from_slice(&inputs), smallvec![output]);
        pass.steps.push(Step::Masked { mask, kernel: kernel.clone(), inputs, outputs, flags });
    };
    if random.chance(50) {
        step(&kernel, [a, target], between);
        step(&loops::add(), [between, b], target);
    } else {
        step(&kernel, [target, a], target);
    }
    if random.chance(30) {
        step(&kernel, [target, target], target);
    }
    target
}

fn copy(pass: &mut Pass, from: Arg, to: Arg) {
    pass.steps.push(Step::Apply { kernel: own::copy(8), inputs: smallvec![from], outputs: smallvec![to], flags: 0 });
}

/// Arithmetic over inputs of any layout into one or two outputs, the second computed in place of an input.
pub(crate) fn chain(random: &mut Random, long: bool) -> Case {
    let (rows, inner) = shape(random, long);
    let mut builder = Builder::new(random, rows, inner);
    let mut pass = builder.pass();
    let mut operands = Vec::new();
    for _ in 0..1 + builder.random.below(4) {
        let access = if builder.random.chance(20) { builder.constant() } else { builder.input() };
        operands.push(add_access(&mut pass, access));
    }
    if builder.random.chance(30) {
        let output = if builder.random.chance(50) {
            add_register(&mut pass, 8)
        } else {
            let access = builder.output();
            add_access(&mut pass, access)
        };
        let (start, delta) = (element(builder.random.double()), element(builder.random.double()));
        pass.steps.push(Step::Index { number: Number::F64, start, delta, output });
        operands.push(output);
    }
    let in_place = builder.output();
    let in_place = add_access(&mut pass, in_place);
    operands.push(in_place);
    let steps = 1 + builder.random.below(8);
    let result = arithmetic(builder.random, &mut pass, operands, steps);
    let access = builder.output();
    let output = add_access(&mut pass, access);
    copy(&mut pass, result, output);
    let kernel = loops::add();
    pass.steps.push(Step::Apply {
        kernel,
        inputs: smallvec![in_place, result],
        outputs: smallvec![in_place],
        flags: 0,
    });
    if builder.random.chance(30) && rows > 2 {
        pass.rows = 1..rows - 1;
    }
    builder.program.passes.push(pass);
    builder.finish(Split::Rows)
}

fn reducer(random: &mut Random) -> (Reducer, Seed) {
    let seed = if random.chance(50) { Seed::First } else { Seed::Value(element(random.double())) };
    match random.below(4) {
        0 => (Reducer::Fold(loops::maximum()), seed),
        1 => {
            (Reducer::ArgExtreme(if random.chance(50) { Extreme::Min } else { Extreme::Max }, Number::F64), Seed::First)
        }
        _ => (Reducer::Pairwise(Float::F64), seed),
    }
}

/// Like a softmax: a value, its reduction, and both again in a later pass.
pub(crate) fn softmax(random: &mut Random, long: bool) -> Case {
    let (mut rows, mut inner) = shape(random, long);
    if inner.is_empty() {
        inner.push(1 + random.below(300));
        rows = rows.min(30);
    }
    let axes = 1 + random.below(inner.len());
    let kept = inner.len() - axes;
    let everything = inner.len();
    let mut builder = Builder::new(random, rows, inner);
    let value_slot = builder.slot(everything);
    let reduced_slot = builder.slot(kept);

    let mut first = builder.pass();
    let accesses = [builder.input(), builder.input(), builder.constant()];
    let operands = accesses.map(|access| add_access(&mut first, access)).to_vec();
    let value = arithmetic(builder.random, &mut first, operands, 3);
    let slot = add_access(&mut first, value_slot.clone());
    copy(&mut first, value, slot);
    let Arg::Access(reduced) = add_access(&mut first, reduced_slot.clone()) else { unreachable!() };
    let (reducer, seed) = reducer(builder.random);
    first.steps.push(Step::Reduce { reducer, seed, input: value, output: reduced, axes, flags: 0 });
    let mut kept_axes = builder.all();
    kept_axes[1 + kept..].fill(false);
    let access = builder.buffer(8, &kept_axes, false);
    let Arg::Access(output) = add_access(&mut first, access) else { unreachable!() };
    let seed = Seed::Value(element(0.0));
    first.steps.push(Step::Reduce {
        reducer: Reducer::Pairwise(Float::F64),
        seed,
        input: slot,
        output,
        axes,
        flags: 0,
    });

    let mut second = builder.pass();
    let operands = vec![add_access(&mut second, value_slot), add_access(&mut second, reduced_slot)];
    let result = arithmetic(builder.random, &mut second, operands, 2);
    let access = builder.output();
    let output = add_access(&mut second, access);
    copy(&mut second, result, output);
    builder.program.passes.extend([first, second]);
    builder.finish(Split::Rows)
}

/// Arithmetic over short lines, their sums, and sometimes the values too.
pub(crate) fn short_lines(random: &mut Random) -> Case {
    let rows = 1 + random.below(12);
    let mut inner: SmallVec<[usize; 4]> = (0..random.below(3)).map(|_| 1 + random.below(6)).collect();
    let longest = if random.chance(50) { 20 } else { 140 };
    inner.push(1 + random.below(longest));
    let kept = inner.len() - 1;
    let mut builder = Builder::new(random, rows, inner);
    let mut pass = builder.pass();
    let mut value = builder.input();
    let mut operands = vec![add_access(&mut pass, value)];
    for _ in 0..builder.random.below(3) {
        value = if builder.random.chance(20) { builder.constant() } else { builder.input() };
        operands.push(add_access(&mut pass, value));
    }
    let mut result = operands[0];
    for _ in 0..builder.random.below(6) {
        let other = operands[builder.random.below(operands.len())];
        let ufunc = ["add", "subtract", "multiply", "negative"][builder.random.below(4)];
        let inputs: SmallVec<[Arg; 3]> = if ufunc == "negative" { smallvec![result] } else { smallvec![result, other] };
        let kernel = own::lookup(ufunc, &vec![Number::F64; inputs.len() + 1]).expect("a loop of ours");
        result = add_register(&mut pass, 8);
        pass.steps.push(Step::Apply { kernel, inputs, outputs: smallvec![result], flags: 0 });
        operands.push(result);
    }
    if builder.random.chance(20) {
        let access = builder.output();
        let output = add_access(&mut pass, access);
        copy(&mut pass, result, output);
    }
    for _ in 0..1 + builder.random.below(2) {
        let mut kept_axes = builder.all();
        kept_axes[1 + kept] = false;
        let access = builder.buffer(8, &kept_axes, false);
        let Arg::Access(output) = add_access(&mut pass, access) else { unreachable!() };
        let seed = Seed::Value(element(builder.random.double()));
        let reducer = Reducer::Pairwise(Float::F64);
        pass.steps.push(Step::Reduce { reducer, seed, input: result, output, axes: 1, flags: 0 });
    }
    builder.program.passes.push(pass);
    builder.finish(Split::Rows)
}

/// Totals of a chain.
pub(crate) fn totals(random: &mut Random) -> Case {
    let long = random.chance(50);
    let (rows, inner) = shape(random, long);
    let mut builder = Builder::new(random, rows, inner);
    let mut pass = builder.pass();
    let accesses = [builder.input(), builder.input()];
    let operands = accesses.map(|access| add_access(&mut pass, access)).to_vec();
    let value = arithmetic(builder.random, &mut pass, operands.clone(), 2);
    for (total, input) in [value, operands[0], value].into_iter().enumerate() {
        let (mut reducer, seed) = reducer(builder.random);
        if total == 0 {
            reducer = Reducer::Pairwise(Float::F64);
        }
        pass.steps.push(Step::Total { reducer, seed, input, total, flags: 0 });
        builder.program.totals.push(8);
    }
    builder.program.passes.push(pass);
    builder.finish(Split::Rows)
}

/// Sums over the rows or over a middle axis.
pub(crate) fn accumulation(random: &mut Random) -> Case {
    let long = random.chance(50);
    let (mut rows, mut inner) = shape(random, long);
    if inner.is_empty() {
        inner.push(1 + random.below(100));
        rows = rows.min(100);
    }
    let over_rows = inner.len() < 2 || random.chance(50);
    let axes = inner.len() + 1;
    let mut builder = Builder::new(random, rows, inner);
    let mut pass = builder.pass();
    let accesses = [builder.input(), builder.input()];
    let operands = accesses.map(|access| add_access(&mut pass, access)).to_vec();
    let value = arithmetic(builder.random, &mut pass, operands, 1);
    let mut kept = vec![true; axes];
    kept[usize::from(!over_rows)] = false;
    let access = builder.buffer(8, &kept, false);
    let Arg::Access(output) = add_access(&mut pass, access) else { unreachable!() };
    let seed = if builder.random.chance(50) { Seed::First } else { Seed::Value(element(0.0)) };
    pass.steps.push(Step::Accumulate { kernel: loops::add(), seed, input: value, output, flags: 0 });
    builder.program.passes.push(pass);
    let split = match (over_rows, builder.random.chance(70)) {
        (true, true) => Split::Inner(axes - 2),
        (false, true) => Split::Rows,
        (_, false) => Split::Whole,
    };
    builder.finish(split)
}
