//! What a program means, said as plainly as possible: pass by pass, step by step, element by element.

#![expect(unsafe_code, reason = "calls inner loops on computed addresses")]

use std::collections::HashMap;
use std::ffi::c_char;

use legate_kernels::program::{Access, Arg, Element, Extreme, Float, Loop, Memory, Number, Pass, Reducer, Seed, Step};

use crate::programs::Case;

struct Machine<'a> {
    case: &'a Case,
    buffers: Vec<Vec<Element>>,
    slots: Vec<Vec<Element>>,
    registers: HashMap<(usize, usize), Element>,
}

/// The buffers and totals after the program has run.
pub(crate) fn interpret(case: &Case) -> (Vec<Vec<Element>>, Vec<Element>) {
    let slots =
        case.program.slots.iter().map(|bytes| vec![Element([0; 32]); bytes * case.program.rows / 32 + 1]).collect();
    let mut machine = Machine { case, buffers: case.buffers.clone(), slots, registers: HashMap::new() };
    let mut totals = vec![Element([0; 32]); case.program.totals.len()];
    for pass in &case.program.passes {
        machine.registers.clear();
        for step in &pass.steps {
            machine.step(pass, step, &mut totals);
        }
    }
    (machine.buffers, totals)
}

/// Row and inner indices of every element of a pass, in order.
fn points(pass: &Pass) -> Vec<(usize, Vec<usize>)> {
    let count: usize = pass.inner.iter().product();
    let mut points = Vec::new();
    for row in pass.rows.clone() {
        for flat in 0..count {
            let mut rest = flat;
            let mut indices = vec![0; pass.inner.len()];
            for axis in (0..indices.len()).rev() {
                indices[axis] = rest % pass.inner[axis];
                rest /= pass.inner[axis];
            }
            points.push((row, indices));
        }
    }
    points
}

impl Machine<'_> {
    fn address(&mut self, access: &Access, row: usize, indices: &[usize]) -> *mut u8 {
        let inner: isize =
            indices.iter().zip(&access.inner_strides).map(|(index, stride)| *index as isize * stride).sum();
        let offset = access.offset + row as isize * access.row_stride + inner;
        let memory: *mut u8 = match access.memory {
            Memory::Buffer(buffer) => self.buffers[buffer].as_mut_ptr().cast(),
            Memory::Slot(slot) => self.slots[slot].as_mut_ptr().cast(),
            Memory::Constant(constant) => return (&raw const self.case.program.constants[constant]).cast_mut().cast(),
        };
        memory.wrapping_offset(offset)
    }

    fn read(&mut self, pass: &Pass, arg: Arg, point: usize, row: usize, indices: &[usize]) -> Element {
        match arg {
            Arg::Register(register) => self.registers[&(register, point)],
            Arg::Access(access) => {
                let access = &pass.accesses[access];
                let mut element = Element([0; 32]);
                let address = self.address(access, row, indices);
                // SAFETY: the generator makes accesses that lie within their buffers.
                unsafe { std::ptr::copy_nonoverlapping(address, element.0.as_mut_ptr(), access.item_bytes) };
                element
            }
        }
    }

    fn write(&mut self, pass: &Pass, arg: Arg, value: Element, point: usize, row: usize, indices: &[usize]) {
        match arg {
            Arg::Register(register) => {
                self.registers.insert((register, point), value);
            }
            Arg::Access(access) => {
                let access = &pass.accesses[access];
                let address = self.address(access, row, indices);
                // SAFETY: as above.
                unsafe { std::ptr::copy_nonoverlapping(value.0.as_ptr(), address, access.item_bytes) };
            }
        }
    }

    fn step(&mut self, pass: &Pass, step: &Step, totals: &mut [Element]) {
        let points = points(pass);
        match step {
            Step::Apply { kernel, inputs, outputs, .. } => {
                for (point, (row, indices)) in points.iter().enumerate() {
                    let values: Vec<Element> =
                        inputs.iter().map(|input| self.read(pass, *input, point, *row, indices)).collect();
                    let result = call(kernel, &values);
                    self.write(pass, outputs[0], result, point, *row, indices);
                }
            }
            Step::Masked { mask, kernel, inputs, outputs, .. } => {
                for (point, (row, indices)) in points.iter().enumerate() {
                    if self.read(pass, *mask, point, *row, indices).0[0] == 0 {
                        continue;
                    }
                    let values: Vec<Element> =
                        inputs.iter().map(|input| self.read(pass, *input, point, *row, indices)).collect();
                    let result = call(kernel, &values);
                    self.write(pass, outputs[0], result, point, *row, indices);
                }
            }
            Step::Index { start, delta, output, .. } => {
                for (point, (row, indices)) in points.iter().enumerate() {
                    let flat = indices
                        .iter()
                        .zip(&pass.inner)
                        .fold(*row - pass.rows.start, |flat, (index, length)| flat * length + index);
                    let value = double(start) + flat as f64 * double(delta);
                    self.write(pass, *output, element(value), point, *row, indices);
                }
            }
            Step::Reduce { reducer, seed, input, output, axes, .. } => {
                let folded: usize = pass.inner[pass.inner.len() - axes..].iter().product();
                for (group, chunk) in points.chunks(folded).enumerate() {
                    let values: Vec<Element> = chunk
                        .iter()
                        .enumerate()
                        .map(|(index, (row, indices))| self.read(pass, *input, group * folded + index, *row, indices))
                        .collect();
                    let (row, indices) = &chunk[0];
                    self.write(pass, Arg::Access(*output), reduce(reducer, *seed, &values), 0, *row, indices);
                }
            }
            Step::Total { reducer, seed, input, total, .. } => {
                let values: Vec<Element> = points
                    .iter()
                    .enumerate()
                    .map(|(point, (row, indices))| self.read(pass, *input, point, *row, indices))
                    .collect();
                totals[*total] = reduce(reducer, *seed, &values);
            }
            Step::Accumulate { kernel, seed, input, output, .. } => {
                let mut seeded: HashMap<usize, bool> = HashMap::new();
                for (point, (row, indices)) in points.iter().enumerate() {
                    let value = self.read(pass, *input, point, *row, indices);
                    let address = self.address(&pass.accesses[*output], *row, indices).addr();
                    let old = match (seeded.insert(address, true), seed) {
                        (Some(_), _) => self.read(pass, Arg::Access(*output), point, *row, indices),
                        (None, Seed::Value(seed)) => *seed,
                        (None, Seed::First) => {
                            self.write(pass, Arg::Access(*output), value, point, *row, indices);
                            continue;
                        }
                    };
                    let result = call(kernel, &[old, value]);
                    self.write(pass, Arg::Access(*output), result, point, *row, indices);
                }
            }
        }
    }
}

fn call(kernel: &Loop, inputs: &[Element]) -> Element {
    let mut inputs = inputs.to_vec();
    let mut output = Element([0; 32]);
    let mut data: Vec<*mut c_char> = inputs.iter_mut().map(|input| input.0.as_mut_ptr().cast()).collect();
    data.push(output.0.as_mut_ptr().cast());
    let strides = vec![0; data.len()];
    let length = 1;
    // SAFETY: one element per operand.
    let code = unsafe {
        (kernel.function)(kernel.context, data.as_ptr(), &raw const length, strides.as_ptr(), kernel.auxdata)
    };
    assert_eq!(code, 0);
    output
}

fn reduce(reducer: &Reducer, seed: Seed, values: &[Element]) -> Element {
    match reducer {
        Reducer::Pairwise(Float::F64) => {
            let doubles: Vec<f64> = values.iter().map(double).collect();
            match seed {
                Seed::Value(seed) => element(double(&seed) + pairwise(&doubles)),
                Seed::First => element(doubles[0] + pairwise(&doubles[1..])),
            }
        }
        Reducer::Fold(kernel) => {
            let (first, rest) = match seed {
                Seed::Value(seed) => (seed, values),
                Seed::First => (values[0], &values[1..]),
            };
            rest.iter().fold(first, |accumulator, value| call(kernel, &[accumulator, *value]))
        }
        Reducer::ArgExtreme(extreme, Number::F64) => {
            let doubles: Vec<f64> = values.iter().map(double).collect();
            let mut best = 0;
            for (index, value) in doubles.iter().enumerate() {
                let better = if *extreme == Extreme::Min { *value < doubles[best] } else { *value > doubles[best] };
                if !doubles[best].is_nan() && (better || value.is_nan()) {
                    best = index;
                }
            }
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&(best as i64).to_ne_bytes());
            Element(bytes)
        }
        Reducer::Pairwise(_) | Reducer::ArgExtreme(..) => unreachable!("the generator makes doubles"),
    }
}

/// NumPy's `pairwise_sum`, as it is defined.
pub(crate) fn pairwise(values: &[f64]) -> f64 {
    let count = values.len();
    if count < 8 {
        return values.iter().fold(-0.0, |sum, value| sum + value);
    }
    if count <= 128 {
        let mut sums: [f64; 8] = std::array::from_fn(|lane| values[lane]);
        let whole = count - count % 8;
        for index in 8..whole {
            sums[index % 8] += values[index];
        }
        let joined = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
        return values[whole..].iter().fold(joined, |sum, value| sum + value);
    }
    let half = count / 2 - count / 2 % 8;
    pairwise(&values[..half]) + pairwise(&values[half..])
}

fn double(element: &Element) -> f64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&element.0[..8]);
    f64::from_ne_bytes(bytes)
}

pub(crate) fn element(value: f64) -> Element {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&value.to_ne_bytes());
    Element(bytes)
}
