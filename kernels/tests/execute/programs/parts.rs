//! Random programs whose passes walk over parts of the same arrays.

use legate_kernels::program::{Access, Arg, Split, Step};
use smallvec::{SmallVec, smallvec};

use super::{Builder, Case, Random, add_access, add_register, arithmetic, copy};
use crate::loops;

/// Passes over parts of the same arrays, one of which may be a slot: each changes what others have left, by an input or by the
/// other array, sometimes a little beside.
pub(crate) fn parts(random: &mut Random) -> Case {
    let rows = 1 + random.below(40);
    let mut inner: SmallVec<[usize; 4]> = (0..random.below(3)).map(|_| 1 + random.below(6)).collect();
    if let Some(last) = inner.last_mut() {
        *last = 60 + random.below(90);
    }
    let everything = inner.len();
    let mut builder = Builder::new(random, rows, inner);
    let arrays = if builder.random.chance(40) {
        [builder.output(), builder.slot(everything)]
    } else {
        [builder.output(), builder.output()]
    };
    let inputs = [builder.input(), builder.input()];
    // Begins so many elements later along each axis, the rows being counted by the pass.
    let behind = |access: &Access, starts: &[usize]| {
        let steps = access.inner_strides.iter().zip(starts).map(|(stride, start)| stride * start.cast_signed());
        Access { offset: access.offset + steps.sum::<isize>(), ..access.clone() }
    };
    for number in 0..2 + builder.random.below(6) {
        let mut pass = builder.pass();
        let mut starts = vec![0; everything];
        if number > 0 && builder.random.chance(80) {
            let axis = builder.random.below(everything + 1);
            let at_start = builder.random.chance(50);
            match axis.checked_sub(1) {
                None if rows > 1 => pass.rows = usize::from(at_start)..rows - usize::from(!at_start),
                Some(axis) if pass.inner[axis] > 1 => {
                    pass.inner[axis] -= 1;
                    starts[axis] = usize::from(at_start);
                }
                None | Some(_) => {}
            }
        }
        // Inputs may be read at the other end of the axis.
        let elsewhere: Vec<usize> =
            (0..everything).map(|axis| builder.random.below(builder.inner[axis] - pass.inner[axis] + 1)).collect();
        let own = arrays.each_ref().map(|array| add_access(&mut pass, behind(array, &starts)));
        let mut operands: Vec<Arg> =
            inputs.iter().map(|input| add_access(&mut pass, behind(input, &elsewhere))).collect();
        let target = builder.random.below(2);
        if number == 0 {
            for array in own {
                let value = arithmetic(builder.random, &mut pass, operands.clone(), 1);
                copy(&mut pass, value, array);
            }
        } else {
            operands.push(own[target]);
            if builder.random.chance(30) {
                operands.push(own[1 - target]);
            } else if builder.random.chance(20) {
                operands.push(add_access(&mut pass, behind(&arrays[1 - target], &elsewhere)));
            }
            let steps = 1 + builder.random.below(3);
            let value = if builder.random.chance(20) {
                arithmetic(builder.random, &mut pass, operands, steps)
            } else {
                let other = operands[builder.random.below(operands.len())];
                let value = add_register(&mut pass, 8);
                let kernel = loops::subtract();
                let inputs = smallvec![own[target], other];
                pass.steps.push(Step::Apply { kernel, inputs, outputs: smallvec![value], flags: 0 });
                value
            };
            copy(&mut pass, value, own[target]);
            if builder.random.chance(30) {
                let kernel = loops::add();
                let inputs = smallvec![own[target], own[target]];
                pass.steps.push(Step::Apply { kernel, inputs, outputs: smallvec![own[target]], flags: 0 });
            }
        }
        builder.program.passes.push(pass);
    }
    let mut last = builder.pass();
    let values = arrays.map(|array| add_access(&mut last, array));
    let sum = arithmetic(builder.random, &mut last, values.to_vec(), 1);
    let access = builder.output();
    let output = add_access(&mut last, access);
    copy(&mut last, sum, output);
    builder.program.passes.push(last);
    builder.finish(Split::Rows)
}
