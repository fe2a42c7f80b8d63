//! Programs that come again: a loop of the user's makes the same few programs at every turn, and their executables are kept.
//!
//! Promises that what [`Kept::compile`] gives does what [`Executable::compile`] of the program would: a program is the same only if
//! it is so step by step, with the same loops, constants and strides. The first time nothing is kept, so that programs with new
//! constants at every turn cost no more than a look.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHasher;

use super::Executable;
use crate::program::{Loop, Memory, Program, Step};

/// Programs that are remembered: more than a loop has groups.
const PLACES: usize = 128;

/// Steps of a program from which on it is not kept: it runs long enough.
const MOST_STEPS: usize = 64;

/// What is at one place.
#[derive(Clone, Default)]
struct Place {
    /// Of the program that came last.
    hash: u64,
    /// Once it has come twice.
    known: Option<(Program, Arc<Executable>)>,
}

/// Executables of programs that have come more than once.
pub struct Kept(Mutex<Vec<Place>>);

impl Default for Kept {
    fn default() -> Kept {
        Kept(Mutex::new(vec![Place::default(); PLACES]))
    }
}

impl Kept {
    /// The executable of a program.
    pub fn compile(&self, program: Program) -> Arc<Executable> {
        if program.passes.iter().map(|pass| pass.steps.len()).sum::<usize>() > MOST_STEPS {
            return Arc::new(Executable::compile(program));
        }
        let hash = hash_of(&program);
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = &mut places[hash as usize % PLACES];
        if place.hash != hash {
            *place = Place { hash, known: None };
            return Arc::new(Executable::compile(program));
        }
        match &place.known {
            Some((known, executable)) if *known == program => executable.clone(),
            Some(_) | None => {
                let executable = Arc::new(Executable::compile(program.clone()));
                place.known = Some((program, executable.clone()));
                executable
            }
        }
    }
}

/// A hash that differs for programs that differ in their lengths, walks, loops or constants, in all likelihood.
fn hash_of(program: &Program) -> u64 {
    let mut hasher = FxHasher::default();
    program.rows.hash(&mut hasher);
    for constant in &program.constants {
        constant.0[..16].hash(&mut hasher);
    }
    for pass in &program.passes {
        pass.rows.end.hash(&mut hasher);
        pass.inner.iter().for_each(|length| length.hash(&mut hasher));
        for access in &pass.accesses {
            let memory = match access.memory {
                Memory::Buffer(index) => index,
                Memory::Slot(index) => index + (1 << 16),
                Memory::Constant(index) => index + (2 << 16),
            };
            (memory, access.offset, access.row_stride).hash(&mut hasher);
            access.inner_strides.iter().for_each(|stride| stride.hash(&mut hasher));
        }
        for step in &pass.steps {
            match step {
                Step::Apply { kernel, .. } | Step::Masked { kernel, .. } | Step::Accumulate { kernel, .. } => {
                    hash_loop(kernel, &mut hasher);
                }
                Step::Index { start, delta, .. } => (start.0, delta.0).hash(&mut hasher),
                Step::Reduce { axes, .. } => axes.hash(&mut hasher),
                Step::Total { total, .. } => total.hash(&mut hasher),
            }
        }
    }
    hasher.finish()
}

fn hash_loop(kernel: &Loop, hasher: &mut FxHasher) {
    (kernel.function as usize, kernel.context as usize, kernel.auxdata as usize).hash(hasher);
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::loops;
    use crate::program::{Access, Arg, Element, Number, Pass, Split};

    /// `y = x + constant`, of so many rows.
    fn program(rows: usize, constant: f64) -> Program {
        let access = |memory, row_stride| Access {
            memory,
            offset: 0,
            row_stride,
            inner_strides: smallvec![],
            item_bytes: 8,
            aligned: true,
        };
        let mut element = Element([0; 32]);
        element.0[..8].copy_from_slice(&constant.to_ne_bytes());
        let step = Step::Apply {
            kernel: loops::lookup("add", &[Number::F64; 3]).expect("there is an addition"),
            inputs: smallvec![Arg::Access(0), Arg::Access(1)],
            outputs: smallvec![Arg::Access(2)],
            flags: 0,
        };
        Program {
            rows,
            buffers: 2,
            read_soon: Vec::new(),
            slots: Vec::new(),
            constants: vec![element],
            totals: Vec::new(),
            flags: 1,
            split: Split::Rows,
            passes: vec![Pass {
                rows: 0..rows,
                inner: smallvec![],
                accesses: vec![
                    access(Memory::Buffer(0), 8),
                    access(Memory::Constant(0), 0),
                    access(Memory::Buffer(1), 8),
                ],
                registers: Vec::new(),
                steps: vec![step],
            }],
        }
    }

    #[test]
    fn a_program_is_kept_when_it_has_come_twice() {
        let kept = Kept::default();
        let made: Vec<Arc<Executable>> = (0..4).map(|_| kept.compile(program(9, 1.0))).collect();
        assert!(!Arc::ptr_eq(&made[0], &made[1]));
        assert!(Arc::ptr_eq(&made[1], &made[2]) && Arc::ptr_eq(&made[2], &made[3]));
    }

    #[test]
    fn programs_that_differ_in_anything_are_not_the_same() {
        let kept = Kept::default();
        let first = (0..3).map(|_| kept.compile(program(9, 1.0))).last().expect("three");
        let mut others = vec![program(9, 2.0), program(8, 1.0), program(9, -0.0), program(9, 0.0)];
        let mut shifted = program(9, 1.0);
        shifted.passes[0].accesses[0].offset = 8;
        let mut unaligned = program(9, 1.0);
        unaligned.passes[0].accesses[0].aligned = false;
        let mut soon = program(9, 1.0);
        soon.read_soon.push(1);
        let mut swapped = program(9, 1.0);
        if let Step::Apply { inputs, .. } = &mut swapped.passes[0].steps[0] {
            inputs.swap(0, 1);
        }
        others.extend([shifted, unaligned, soon, swapped]);
        for other in &others {
            assert!(*other != program(9, 1.0));
            for _ in 0..3 {
                let made = kept.compile(other.clone());
                assert!(!Arc::ptr_eq(&made, &first));
            }
        }
        for pair in [[0, 1], [2, 3], [4, 5], [6, 7]] {
            assert!(others[pair[0]] != others[pair[1]]);
        }
        assert!(program(9, 1.0) == program(9, 1.0));
    }
}
