//! Code against the same operations done one by one, on elements of all kinds.

#![expect(unsafe_code, reason = "runs code on raw buffers")]

use super::emit::fits;
use super::{Instruction, LineSum, Lines, Tape, Value, Verb, code_of_lines, code_of_tape, is_available};

/// Numbers that look random: xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) as usize % limit
    }

    fn double(&mut self) -> f64 {
        const SPECIAL: [f64; 6] = [0.0, -0.0, f64::INFINITY, f64::NAN, 5e-324, -1.0];
        match self.below(60) {
            special @ 0..6 => SPECIAL[special],
            _ => self.below(1 << 40) as f64 / 1e9 - 500.0,
        }
    }
}

/// A kind of number.
trait Number: Copy + PartialEq + std::fmt::Debug {
    fn of(value: f64) -> Self;
    fn act(verb: Verb, first: Self, last: Self) -> Self;
    fn bits(self) -> u64;
}

macro_rules! number {
    ($number:ty) => {
        impl Number for $number {
            fn of(value: f64) -> $number {
                value as $number
            }

            fn act(verb: Verb, first: $number, last: $number) -> $number {
                match verb {
                    Verb::Add => first + last,
                    Verb::Subtract => first - last,
                    Verb::Multiply => first * last,
                    Verb::Divide => first / last,
                    Verb::Sqrt => last.sqrt(),
                    Verb::Negative => -last,
                    Verb::Absolute => last.abs(),
                    Verb::Copy => last,
                }
            }

            fn bits(self) -> u64 {
                // Which of two NaNs an operation returns is the processor's affair; that it is one is not.
                if self.is_nan() { u64::MAX } else { self.to_bits().into() }
            }
        }
    };
}

number!(f32);
number!(f64);

const VERBS: [Verb; 8] =
    [Verb::Add, Verb::Subtract, Verb::Multiply, Verb::Divide, Verb::Sqrt, Verb::Negative, Verb::Absolute, Verb::Copy];

/// A random tape over `inputs` operands (of which some repeat), with a few stored results.
fn random_tape<T: Number>(random: &mut Random, length: usize) -> Tape {
    let inputs = 1 + random.below(5);
    let mut tape = Tape {
        item_bytes: size_of::<T>(),
        repeats: (0..inputs).map(|_| random.below(3) == 0).collect(),
        instructions: Vec::new(),
    };
    for number in 0..length {
        let mut value = || match random.below(3) {
            0 => Value::Memory(random.below(inputs)),
            1 if random.below(8) == 0 => Value::Constant(T::of(1.5).bits()),
            _ if number > 0 => Value::Result(number - 1 - random.below(number.min(6))),
            _ => Value::Memory(random.below(inputs)),
        };
        let operands = [value(), value()];
        let is_stored = number + 1 == length || random.below(12) == 0;
        let store = (is_stored && tape.repeats.len() < 10).then(|| {
            tape.repeats.push(false);
            tape.repeats.len() - 1
        });
        tape.instructions.push(Instruction { verb: VERBS[random.below(VERBS.len())], operands, store });
    }
    tape
}

/// The results of a tape for one element.
fn interpret<T: Number>(tape: &Tape, memory: impl Fn(usize) -> T, constant: T) -> Vec<T> {
    let mut results: Vec<T> = Vec::new();
    for instruction in &tape.instructions {
        let [first, last] = instruction.operands.map(|value| match value {
            Value::Result(result) => results[result],
            Value::Memory(operand) => memory(operand),
            Value::Constant(_) => constant,
        });
        results.push(T::act(instruction.verb, first, last));
    }
    results
}

fn check_tapes<T: Number>(seed: u64) {
    let mut random = Random(seed);
    let mut made = 0;
    for round in 0..400 {
        let length = 1 + random.below(if round % 4 == 0 { 60 } else { 12 });
        let tape = random_tape::<T>(&mut random, length);
        let count = random.below(70);
        let mut buffers: Vec<Vec<T>> =
            tape.repeats.iter().map(|_| (0..count + 1).map(|_| T::of(random.double())).collect()).collect();
        let before = buffers.clone();
        let addresses: Vec<*mut u8> = buffers.iter_mut().map(|buffer| buffer.as_mut_ptr().cast()).collect();
        let Some(code) = code_of_tape(&tape) else {
            assert!(!fits(&tape), "{tape:?}");
            continue;
        };
        made += 1;
        // SAFETY: every operand has `count` elements and one more.
        unsafe { code.run(&addresses, count) };
        for element in 0..count {
            let at = |operand: usize| before[operand][if tape.repeats[operand] { 0 } else { element }];
            let results = interpret(&tape, at, T::of(1.5));
            for (instruction, result) in tape.instructions.iter().zip(results) {
                let Some(operand) = instruction.store else { continue };
                assert_eq!(buffers[operand][element].bits(), result.bits(), "element {element} of {count}: {tape:?}");
            }
        }
        for (operand, buffer) in buffers.iter().enumerate() {
            assert_eq!(buffer[count].bits(), before[operand][count].bits(), "past the end: {tape:?}");
        }
    }
    assert!(made > 300);
}

#[test]
fn tapes_do_what_their_operations_do() {
    if is_available() {
        check_tapes::<f64>(3);
        check_tapes::<f32>(4);
    }
}

/// NumPy's leaf, as it is defined.
fn leaf<T: Number>(values: &[T]) -> T {
    let add = |first: T, last: T| T::act(Verb::Add, first, last);
    if values.len() < 8 {
        return values.iter().copied().fold(T::of(-0.0), add);
    }
    let whole = values.len() - values.len() % 8;
    let mut sums: Vec<T> = values[..8].to_vec();
    for (index, value) in values[..whole].iter().enumerate().skip(8) {
        sums[index % 8] = add(sums[index % 8], *value);
    }
    while sums.len() > 1 {
        sums = sums.chunks(2).map(|pair| add(pair[0], pair[1])).collect();
    }
    values[whole..].iter().copied().fold(sums[0], add)
}

fn check_lines<T: Number>(seed: u64) {
    let mut random = Random(seed);
    let item = size_of::<T>().cast_signed();
    let mut made = 0;
    for _ in 0..400 {
        let length = random.below(7);
        let mut tape = random_tape::<T>(&mut random, length);
        let run = 1 + random.below(super::LONGEST_LINE);
        let (outer, middle) = (random.below(4), 1 + random.below(9));
        let mut sums = Vec::new();
        for _ in 0..1 + random.below(2) {
            let input = if length > 0 { Value::Result(random.below(length)) } else { Value::Memory(0) };
            tape.repeats.push(true);
            sums.push(LineSum { input, seed: T::of(0.25).bits(), output: tape.repeats.len() - 1 });
        }
        let written: Vec<usize> = tape.instructions.iter().filter_map(|instruction| instruction.store).collect();
        let (mut middle_strides, mut outer_strides) = (Vec::new(), Vec::new());
        for (operand, repeats) in tape.repeats.iter().enumerate() {
            let is_output = written.contains(&operand) || sums.iter().any(|sum| sum.output == operand);
            let line = if *repeats { item } else { item * run.cast_signed() };
            middle_strides.push(if is_output || random.below(2) == 0 { line } else { 0 });
            outer_strides.push(if is_output || random.below(2) == 0 { line * middle.cast_signed() } else { 0 });
        }
        let lines = Lines { tape, run, middle, middle_strides, outer_strides, sums };
        let size = outer * middle * run + 9;
        let mut buffers: Vec<Vec<T>> =
            lines.tape.repeats.iter().map(|_| (0..size).map(|_| T::of(random.double())).collect()).collect();
        let before = buffers.clone();
        let addresses: Vec<*mut u8> = buffers.iter_mut().map(|buffer| buffer.as_mut_ptr().cast()).collect();
        let Some(code) = code_of_lines(&lines) else { continue };
        made += 1;
        // SAFETY: every operand has as many elements as the lines have.
        unsafe { code.run_lines(&addresses, outer) };
        let mut expected = before.clone();
        for line in 0..outer * middle {
            let start = |operand: usize| {
                let (outer, middle) = ((line / middle).cast_signed(), (line % middle).cast_signed());
                let bytes = outer * lines.outer_strides[operand] + middle * lines.middle_strides[operand];
                bytes.cast_unsigned() / size_of::<T>()
            };
            let mut inputs: Vec<Vec<T>> = vec![Vec::new(); lines.sums.len()];
            for element in 0..run {
                let at = |operand: usize| start(operand) + if lines.tape.repeats[operand] { 0 } else { element };
                let results = interpret(&lines.tape, |operand| before[operand][at(operand)], T::of(1.5));
                for (instruction, result) in lines.tape.instructions.iter().zip(&results) {
                    if let Some(operand) = instruction.store {
                        expected[operand][at(operand)] = *result;
                    }
                }
                for (input, sum) in inputs.iter_mut().zip(&lines.sums) {
                    input.push(match sum.input {
                        Value::Result(result) => results[result],
                        Value::Memory(operand) => before[operand][at(operand)],
                        Value::Constant(_) => T::of(1.5),
                    });
                }
            }
            for (input, sum) in inputs.iter().zip(&lines.sums) {
                expected[sum.output][start(sum.output)] = T::act(Verb::Add, T::of(0.25), leaf(input));
            }
        }
        for (operand, (found, wanted)) in buffers.iter().zip(&expected).enumerate() {
            let bits = |values: &[T]| values.iter().map(|value| value.bits()).collect::<Vec<_>>();
            assert_eq!(bits(found), bits(wanted), "operand {operand}: {lines:?}");
        }
    }
    assert!(made > 300);
}

#[test]
fn lines_are_computed_and_summed_in_order() {
    if is_available() {
        check_lines::<f64>(5);
        check_lines::<f32>(6);
    }
}
