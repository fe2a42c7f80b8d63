//! What programs become, counted: the walks over registers or memory that are left for each block.
//!
//! A count that grows means that values pass through memory again. Where code cannot be made there is nothing to count.

use legate_kernels::execute::{Executable, Joining};
use legate_kernels::loops;
use legate_kernels::program::{Access, Arg, Element, Float, Memory, Number, Pass, Program, Reducer, Seed, Split, Step};
use smallvec::{SmallVec, smallvec};

fn access(pass: &mut Pass, buffer: usize, strides: &[isize]) -> Arg {
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

fn apply(pass: &mut Pass, ufunc: &str, inputs: &[Arg]) -> Arg {
    pass.registers.push(8);
    let output = Arg::Register(pass.registers.len() - 1);
    let kernel = loops::lookup(ufunc, &vec![Number::F64; inputs.len() + 1]).expect("a loop of ours");
    pass.steps.push(Step::Apply { kernel, inputs: SmallVec::from_slice(inputs), outputs: smallvec![output], flags: 0 });
    output
}

fn sum(pass: &mut Pass, input: Arg, output: Arg) {
    let Arg::Access(output) = output else { unreachable!("results go to memory") };
    let (reducer, seed) = (Reducer::Pairwise(Float::F64), Seed::Value(Element([0; 32])));
    pass.steps.push(Step::Reduce { reducer, seed, input, output, axes: 1, flags: 0 });
}

fn counts(pass: Pass, buffers: usize) -> [usize; 2] {
    let program = Program {
        rows: pass.rows.end,
        buffers,
        slots: Vec::new(),
        constants: Vec::new(),
        totals: Vec::new(),
        flags: 1,
        split: Split::Rows,
        read_soon: Vec::new(),
        passes: vec![pass],
    };
    [Joining::Chains, Joining::Code].map(|joining| Executable::compile_with(program.clone(), joining).operations())
}

#[test]
fn operations_around_sums_of_long_rows_become_one() {
    let mut pass = Pass { rows: 0..6, inner: smallvec![6000], ..Pass::default() };
    let weights = access(&mut pass, 2, &[0, 8]);
    let differences = [0, 1].map(|buffer| {
        let (other, own) = (access(&mut pass, buffer, &[0, 8]), access(&mut pass, buffer, &[8, 0]));
        apply(&mut pass, "subtract", &[other, own])
    });
    let squares = differences.map(|difference| apply(&mut pass, "square", &[difference]));
    let distance = apply(&mut pass, "add", &squares);
    let root = apply(&mut pass, "sqrt", &[distance]);
    let inverse = apply(&mut pass, "reciprocal", &[root]);
    for (index, difference) in differences.into_iter().enumerate() {
        let scaled = apply(&mut pass, "multiply", &[difference, inverse]);
        let weighted = apply(&mut pass, "multiply", &[scaled, weights]);
        let output = access(&mut pass, 3 + index, &[8, 0]);
        sum(&mut pass, weighted, output);
    }
    let [chains, code] = counts(pass, 5);
    // One tape and two sums.
    assert!(code == 3 || code == chains, "{code} operations");
    assert!(chains > 3);
}

#[test]
fn sums_of_short_lines_are_one_operation() {
    let mut pass = Pass { rows: 0..100, inner: smallvec![8, 16], ..Pass::default() };
    let (points, centres) = (access(&mut pass, 0, &[128, 0, 8]), access(&mut pass, 1, &[0, 128, 8]));
    let difference = apply(&mut pass, "subtract", &[points, centres]);
    let square = apply(&mut pass, "multiply", &[difference, difference]);
    let output = access(&mut pass, 2, &[64, 8, 0]);
    sum(&mut pass, square, output);
    let [chains, code] = counts(pass, 3);
    // Chains gather the points and the centres, compute, and sum.
    assert_eq!(chains, 4);
    assert!(code == 1 || code == chains, "{code} operations");
}

#[test]
fn passes_over_parts_of_an_array_become_one_for_each_region() {
    let (rows, columns, row) = (400, 300, 2400);
    let place = |buffer: usize, offset: isize| Access {
        memory: Memory::Buffer(buffer),
        offset,
        row_stride: row,
        inner_strides: smallvec![8],
        item_bytes: 8,
        aligned: true,
    };
    let whole = (0..rows, columns);
    // Rows and columns, where the array is written, and where the other one is read.
    let walks = [
        (whole.0.clone(), columns, 0, 0),
        (1..rows, columns, 0, -row),
        (0..rows - 1, columns, 0, row),
        (0..rows, columns - 1, 8, 0),
        (0..rows, columns - 1, 0, 8),
    ];
    let passes = walks.into_iter().enumerate().map(|(number, (rows, columns, own, other))| {
        let mut pass = Pass { rows, inner: smallvec![columns], ..Pass::default() };
        pass.accesses = vec![place(1, own), place(0, other)];
        let inputs =
            if number == 0 { vec![Arg::Access(1), Arg::Access(1)] } else { vec![Arg::Access(0), Arg::Access(1)] };
        let difference = apply(&mut pass, if number == 0 { "add" } else { "subtract" }, &inputs);
        let kernel = loops::copy(8);
        pass.steps.push(Step::Apply {
            kernel,
            inputs: smallvec![difference],
            outputs: smallvec![Arg::Access(0)],
            flags: 0,
        });
        pass
    });
    let program = Program {
        rows,
        buffers: 2,
        slots: Vec::new(),
        constants: Vec::new(),
        totals: Vec::new(),
        flags: 1,
        split: Split::Rows,
        read_soon: Vec::new(),
        passes: passes.collect(),
    };
    let regions = Executable::compile(program).program().passes.clone();
    // Corners, edges and the middle, which takes all that the five passes do in one walk.
    assert_eq!(regions.len(), 9);
    let middle = regions.iter().find(|pass| pass.rows == (1..rows - 1) && pass.inner[..] == [columns - 2]);
    let middle = middle.expect("a region that all passes cover");
    assert_eq!((middle.steps.len(), middle.accesses.len()), (10, 6));
    let is_memory =
        |step: &Step| matches!(step, Step::Apply { outputs, .. } if matches!(outputs[..], [Arg::Access(_)]));
    assert_eq!(middle.steps.iter().filter(|step| is_memory(step)).count(), 1);
}
