//! Times a few fused programs on one thread, in nanoseconds per element, least of several runs:
//! `cargo bench -p legate-kernels`. Compares with nothing; `scripts/bench` compares whole programs with NumPy.

#![expect(unsafe_code, reason = "runs programs on raw buffers")]

use std::time::Instant;

use legate_kernels::execute::{Executable, FlagTable, Joining, Scratch};
use legate_kernels::loops;
use legate_kernels::program::{
    Access, Arg, Element, Float, Loop, Memory, Number, Pass, Program, Reducer, Seed, Split, Step, Tile,
};
use smallvec::{SmallVec, smallvec};

/// Elements of each benchmark's domain.
const ELEMENTS: usize = 4_000_000;

/// Makes a program; the lengths of its buffers in elements.
type Make = fn() -> (Program, Vec<usize>);

fn own(ufunc: &str, inputs: usize) -> Loop {
    loops::lookup(ufunc, &vec![Number::F64; inputs + 1]).expect("a loop of ours")
}

fn apply(pass: &mut Pass, ufunc: &str, inputs: &[Arg]) -> Arg {
    pass.registers.push(8);
    let output = Arg::Register(pass.registers.len() - 1);
    apply_to(pass, own(ufunc, inputs.len()), inputs, output);
    output
}

fn apply_to(pass: &mut Pass, kernel: Loop, inputs: &[Arg], output: Arg) {
    pass.steps.push(Step::Apply { kernel, inputs: SmallVec::from_slice(inputs), outputs: smallvec![output], flags: 0 });
}

fn buffer(pass: &mut Pass, buffer: usize, strides: &[isize]) -> Arg {
    pass.accesses.push(Access {
        memory: Memory::Buffer(buffer),
        offset: 0,
        row_stride: strides[0],
        inner_strides: SmallVec::from_slice(&strides[1..]),
        item_bytes: 8,
        aligned: true,
    });
    Arg::Access(pass.accesses.len() - 1)
}

/// `a * b + c - d / e`.
fn arithmetic() -> (Program, Vec<usize>) {
    let mut pass = Pass { rows: 0..ELEMENTS, ..Pass::default() };
    let [a, b, c, d, e, output] = [0, 1, 2, 3, 4, 5].map(|index| buffer(&mut pass, index, &[8]));
    let product = apply(&mut pass, "multiply", &[a, b]);
    let sum = apply(&mut pass, "add", &[product, c]);
    let ratio = apply(&mut pass, "divide", &[d, e]);
    let kernel = own("subtract", 2);
    apply_to(&mut pass, kernel, &[sum, ratio], output);
    (program(ELEMENTS, pass, 6), vec![ELEMENTS; 6])
}

/// `sum((a - b) ** 2)`.
fn distance() -> (Program, Vec<usize>) {
    let mut pass = Pass { rows: 0..ELEMENTS, ..Pass::default() };
    let [a, b] = [0, 1].map(|index| buffer(&mut pass, index, &[8]));
    let difference = apply(&mut pass, "subtract", &[a, b]);
    let input = apply(&mut pass, "square", &[difference]);
    let seed = Seed::Value(Element([0; 32]));
    pass.steps.push(Step::Total { reducer: Reducer::Pairwise(Float::F64), seed, input, total: 0, flags: 0 });
    let mut program = program(ELEMENTS, pass, 2);
    program.totals = vec![8];
    (program, vec![ELEMENTS; 2])
}

/// `((x[:, None] - c) ** 2).sum(2)` for rows of 16 and 8 centres.
fn centres() -> (Program, Vec<usize>) {
    let rows = ELEMENTS / 128;
    let mut pass = Pass { rows: 0..rows, inner: smallvec![8, 16], ..Pass::default() };
    let points = buffer(&mut pass, 0, &[128, 0, 8]);
    let centres = buffer(&mut pass, 1, &[0, 128, 8]);
    let difference = apply(&mut pass, "subtract", &[points, centres]);
    let input = apply(&mut pass, "square", &[difference]);
    buffer(&mut pass, 2, &[64, 8, 0]);
    let (reducer, seed) = (Reducer::Pairwise(Float::F64), Seed::Value(Element([0; 32])));
    pass.steps.push(Step::Reduce { reducer, seed, input, output: 2, axes: 1, flags: 0 });
    (program(rows, pass, 3), vec![rows * 16, 128, rows * 8])
}

/// The accelerations of bodies that attract one another: differences, a root, a quotient, and three sums of each row.
fn attraction() -> (Program, Vec<usize>) {
    let bodies = ELEMENTS.isqrt();
    let mut pass = Pass { rows: 0..bodies, inner: smallvec![bodies], ..Pass::default() };
    let masses = buffer(&mut pass, 3, &[0, 8]);
    let differences = [0, 1, 2].map(|axis| {
        let (other, own) = (buffer(&mut pass, axis, &[0, 8]), buffer(&mut pass, axis, &[8, 0]));
        apply(&mut pass, "subtract", &[other, own])
    });
    let squares = differences.map(|difference| apply(&mut pass, "square", &[difference]));
    let sum = apply(&mut pass, "add", &squares[..2]);
    let distance = apply(&mut pass, "add", &[sum, squares[2]]);
    let softened = apply(&mut pass, "add", &[distance, masses]);
    let root = apply(&mut pass, "sqrt", &[softened]);
    let product = apply(&mut pass, "multiply", &[softened, root]);
    let inverse = apply(&mut pass, "reciprocal", &[product]);
    for (axis, difference) in differences.into_iter().enumerate() {
        let weighted = apply(&mut pass, "multiply", &[difference, inverse]);
        let input = apply(&mut pass, "multiply", &[weighted, masses]);
        buffer(&mut pass, 4 + axis, &[8, 0]);
        let (reducer, seed) = (Reducer::Pairwise(Float::F64), Seed::Value(Element([0; 32])));
        let output = pass.accesses.len() - 1;
        pass.steps.push(Step::Reduce { reducer, seed, input, output, axes: 1, flags: 0 });
    }
    (program(bodies, pass, 7), vec![bodies; 7])
}

/// `a.T + b` for square matrices.
fn transposed() -> (Program, Vec<usize>) {
    let side = ELEMENTS.isqrt();
    let stride = 8 * side.cast_signed();
    let mut pass = Pass { rows: 0..side, inner: smallvec![side], ..Pass::default() };
    let a = buffer(&mut pass, 0, &[8, stride]);
    let b = buffer(&mut pass, 1, &[stride, 8]);
    let output = buffer(&mut pass, 2, &[stride, 8]);
    let kernel = own("add", 2);
    apply_to(&mut pass, kernel, &[a, b], output);
    (program(side, pass, 3), vec![side * side; 3])
}

fn program(rows: usize, pass: Pass, buffers: usize) -> Program {
    Program {
        rows,
        buffers,
        read_soon: Vec::new(),
        slots: Vec::new(),
        constants: Vec::new(),
        totals: Vec::new(),
        flags: 1,
        split: Split::Rows,
        passes: vec![pass],
    }
}

fn main() {
    let benchmarks: [(&str, Make); 5] = [
        ("a * b + c - d / e", arithmetic),
        ("sum((a - b) ** 2)", distance),
        ("((x[:, None] - c) ** 2).sum(2)", centres),
        ("accelerations of bodies", attraction),
        ("a.T + b", transposed),
    ];
    for (name, make) in benchmarks {
        let (program, lengths) = make();
        let mut memory: Vec<Vec<f64>> = lengths.iter().map(|length| vec![1.5; *length]).collect();
        let bases: Vec<*mut u8> = memory.iter_mut().map(|buffer| buffer.as_mut_ptr().cast()).collect();
        let tile = Tile { rows: 0..program.rows, inner: None };
        let times = [Joining::Chains, Joining::Code].map(|joining| {
            let executable = Executable::compile_with(program.clone(), joining);
            let (mut scratch, flags) = (Scratch::new(), FlagTable::new(1));
            let mut least = f64::INFINITY;
            for _ in 0..20 {
                let start = Instant::now();
                // SAFETY: the buffers are as long as the accesses reach, and nothing else runs.
                let partials = unsafe { executable.run(&bases, &tile, &mut scratch, &flags) }.expect("no loop fails");
                executable.finish(&[partials], &flags).expect("no loop fails");
                least = least.min(start.elapsed().as_secs_f64());
            }
            least * 1e9 / ELEMENTS as f64
        });
        println!("{name:<32} {:.2} ns an element with chains, {:.2} with code", times[0], times[1]);
    }
}
