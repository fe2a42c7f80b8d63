//! Which passes over parts of one array become one pass for each region of it.
//!
//! `q = 4 * p; q[1:] -= p[:-1]; q[:, 1:] -= p[:, :-1]; ...` walks over `q` once for each statement, each time over a little less of it.
//! Where all that such passes write lies, element by element, at the same place for all of them, the array is cut where one of them
//! begins or ends, and each region is walked once, by all passes that cover it; what they hand to each other stays in registers.
//! Promises that each element gets the same operations in the same order. Knows nothing of what they compute.

use std::collections::BTreeMap;
use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use super::{Access, Arg, Memory, Pass, Program, Split, Step};

/// Fewest elements of the innermost run of the largest region: shorter runs are begun too often.
const LEAST_RUN: usize = 64;
/// Most regions, which are looked at for each chunk.
const MOST_REGIONS: usize = 32;
/// Most steps and accesses of a pass that is put together.
const MOST_STEPS: usize = 64;

/// A pass and where its first inner element is, in elements along each inner axis from the first pass's.
struct Placed<'a> {
    pass: &'a Pass,
    place: SmallVec<[isize; 4]>,
}

impl Placed<'_> {
    /// Where it is along the rows (axis 0) or an inner axis.
    fn range(&self, axis: usize) -> Range<isize> {
        match axis.checked_sub(1) {
            None => self.pass.rows.start.cast_signed()..self.pass.rows.end.cast_signed(),
            Some(inner) => self.place[inner]..self.place[inner] + self.pass.inner[inner].cast_signed(),
        }
    }

    fn elements(&self) -> usize {
        self.pass.rows.len() * self.pass.inner.iter().product::<usize>()
    }
}

impl Program {
    /// Puts passes together that write the same places of the same memory, region by region.
    pub(crate) fn join_passes(&mut self) {
        if self.split != Split::Rows || self.passes.len() < 2 {
            return;
        }
        let mut joined = Vec::with_capacity(self.passes.len());
        let mut first = 0;
        while first < self.passes.len() {
            let mut run =
                vec![Placed { pass: &self.passes[first], place: smallvec![0; self.passes[first].inner.len()] }];
            while let Some(next) = self.passes.get(first + run.len()).and_then(|pass| placed(&run, pass))
                && may_pay(&run, &next)
            {
                run.push(next);
            }
            let length = run.len();
            match regions(&run) {
                Some(passes) => joined.extend(passes),
                None => joined.extend(self.passes[first..first + length].iter().cloned()),
            }
            first += length;
        }
        self.passes = joined;
    }
}

/// Whether a pass does nothing but apply loops element by element.
fn is_plain(pass: &Pass) -> bool {
    pass.steps.iter().all(|step| matches!(step, Step::Apply { .. }))
        && !pass.rows.is_empty()
        && !pass.inner.contains(&0)
}

fn outputs(pass: &Pass) -> impl Iterator<Item = usize> {
    let all = pass.steps.iter().map(|step| if let Step::Apply { outputs, .. } = step { &outputs[..] } else { &[] });
    all.flatten().filter_map(|output| if let Arg::Access(access) = output { Some(*access) } else { None })
}

/// The memory that passes write.
fn written<'a>(passes: impl Iterator<Item = &'a Pass>) -> Vec<Memory> {
    let mut found = Vec::new();
    for pass in passes {
        for memory in outputs(pass).map(|access| pass.accesses[access].memory) {
            if !found.contains(&memory) {
                found.push(memory);
            }
        }
    }
    found
}

/// Where a pass belongs that may join others.
fn placed<'a>(run: &[Placed<'_>], pass: &'a Pass) -> Option<Placed<'a>> {
    let first = run[0].pass;
    if !is_plain(first) || !is_plain(pass) || first.inner.len() != pass.inner.len() {
        return None;
    }
    let memories = written(run.iter().map(|placed| placed.pass).chain([pass]));
    // The place is that of any access to memory that both sides know.
    let shared = |access: &Access| {
        let known = run.iter().flat_map(|placed| placed.pass.accesses.iter().map(move |known| (placed, known)));
        known.into_iter().find(|(_, known)| memories.contains(&access.memory) && known.memory == access.memory)
    };
    let (access, (beside, known)) = pass.accesses.iter().find_map(|access| Some((access, shared(access)?)))?;
    let mut place = steps_between(known, access)?;
    place.iter_mut().zip(&beside.place).for_each(|(own, other)| *own += other);
    let next = Placed { pass, place };
    let all = || run.iter().chain([&next]);
    let agree = memories.iter().all(|memory| {
        let mut walks = all().flat_map(|placed| {
            let own = placed.pass.accesses.iter().filter(|access| access.memory == *memory);
            own.map(|access| moved(access, &placed.place, -1))
        });
        let Some(walk) = walks.next() else { return true };
        walks.all(|other| other == walk) && is_apart(&walk, all())
    });
    agree.then_some(next)
}

/// How many elements along each inner axis one walk begins behind another, if they are alike otherwise.
fn steps_between(from: &Access, to: &Access) -> Option<SmallVec<[isize; 4]>> {
    if from.inner_strides != to.inner_strides {
        return None;
    }
    let mut rest = to.offset - from.offset;
    let mut steps: SmallVec<[isize; 4]> = smallvec![0; from.inner_strides.len()];
    let mut order: SmallVec<[usize; 4]> = (0..steps.len()).filter(|axis| from.inner_strides[*axis] != 0).collect();
    order.sort_by_key(|axis| std::cmp::Reverse(from.inner_strides[*axis].unsigned_abs()));
    for axis in order {
        let stride = from.inner_strides[axis];
        let half = stride.abs() / 2;
        steps[axis] = (rest + half).div_euclid(stride.abs()) * stride.signum();
        rest -= steps[axis] * stride;
    }
    (rest == 0).then_some(steps)
}

/// The walk that begins so many elements later, times `sign`.
fn moved(access: &Access, place: &[isize], sign: isize) -> Access {
    let bytes: isize = access.inner_strides.iter().zip(place).map(|(stride, steps)| stride * steps).sum();
    Access { offset: access.offset + sign * bytes, ..access.clone() }
}

/// Whether a walk has a place of its own for each element of the box around some passes.
fn is_apart<'a>(walk: &Access, passes: impl Iterator<Item = &'a Placed<'a>> + Clone) -> bool {
    let mut axes: SmallVec<[(usize, usize); 5]> = SmallVec::new();
    for (axis, stride) in walk.inner_strides.iter().enumerate() {
        let start = passes.clone().map(|placed| placed.place[axis]).min().unwrap_or(0);
        let end = passes.clone().map(|placed| placed.place[axis] + placed.pass.inner[axis].cast_signed()).max();
        axes.push((stride.unsigned_abs(), (end.unwrap_or(0) - start).cast_unsigned()));
    }
    axes.retain(|(_, length)| *length > 1);
    axes.sort_unstable();
    let mut bytes = walk.item_bytes;
    let within = axes.into_iter().all(|(stride, length)| {
        let fits = stride >= bytes;
        bytes = stride * length;
        fits
    });
    within && walk.row_stride.unsigned_abs() >= bytes
}

/// Whether regions of a run could pay with one more pass: most elements must be covered by all of them, by no more steps than one
/// pass takes.
fn may_pay(run: &[Placed<'_>], next: &Placed<'_>) -> bool {
    let all = || run.iter().chain([next]);
    let common = (0..=next.place.len()).map(|axis| {
        let start = all().map(|placed| placed.range(axis).start).max().unwrap_or(0);
        let end = all().map(|placed| placed.range(axis).end).min().unwrap_or(0);
        (end - start).max(0).cast_unsigned()
    });
    let largest = all().map(Placed::elements).max().unwrap_or(0);
    let steps: usize = all().map(|placed| placed.pass.steps.len()).sum();
    common.product::<usize>() * 2 >= largest && steps <= MOST_STEPS
}

/// One axis cut where passes begin and end.
fn cuts(ranges: impl Iterator<Item = Range<isize>>) -> Vec<Range<isize>> {
    let mut edges: Vec<isize> = ranges.flat_map(|range| [range.start, range.end]).collect();
    edges.sort_unstable();
    edges.dedup();
    edges.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

/// The passes of the regions; none where that would not pay.
fn regions(run: &[Placed<'_>]) -> Option<Vec<Pass>> {
    if run.len() < 2 {
        return None;
    }
    let axes = run[0].place.len() + 1;
    let parts: Vec<Vec<Range<isize>>> =
        (0..axes).map(|axis| cuts(run.iter().map(|placed| placed.range(axis)))).collect();
    let count: usize = parts.iter().map(Vec::len).product();
    if count > MOST_REGIONS {
        return None;
    }
    let covers = |placed: &Placed<'_>, region: &[&Range<isize>]| {
        region.iter().enumerate().all(|(axis, part)| {
            let own = placed.range(axis);
            own.start <= part.start && part.end <= own.end
        })
    };
    let mut passes = Vec::new();
    let (mut most, mut all) = (0, 0);
    for number in 0..count {
        let mut rest = number;
        let mut region: SmallVec<[&Range<isize>; 5]> = SmallVec::new();
        for own in parts.iter().rev() {
            region.push(&own[rest % own.len()]);
            rest /= own.len();
        }
        region.reverse();
        let over: Vec<&Placed<'_>> = run.iter().filter(|placed| covers(placed, &region)).collect();
        if over.is_empty() {
            continue;
        }
        let elements: usize = region.iter().map(|part| part.len()).product();
        all += elements;
        if over.len() == run.len() {
            most = elements;
            if axes > 1 && region[axes - 1].len() < LEAST_RUN {
                return None;
            }
        }
        passes.push(joined(&over, &region)?);
    }
    (most * 2 >= all).then_some(passes)
}

/// What passes do in a region, as one.
fn joined(over: &[&Placed<'_>], region: &[&Range<isize>]) -> Option<Pass> {
    let mut pass = Pass {
        rows: region[0].start.cast_unsigned()..region[0].end.cast_unsigned(),
        inner: region[1..].iter().map(|part| part.len()).collect(),
        ..Pass::default()
    };
    // How often each access is written from here on.
    let mut writes: BTreeMap<usize, usize> = BTreeMap::new();
    for placed in over {
        let start: SmallVec<[isize; 4]> =
            region[1..].iter().zip(&placed.place).map(|(part, place)| part.start - place).collect();
        let (first_register, mut numbers) = (pass.registers.len(), Vec::new());
        for access in &placed.pass.accesses {
            let access = moved(access, &start, 1);
            numbers.push(pass.accesses.iter().position(|known| *known == access).unwrap_or_else(|| {
                pass.accesses.push(access);
                pass.accesses.len() - 1
            }));
        }
        pass.registers.extend_from_slice(&placed.pass.registers);
        let own = |arg: &Arg| match arg {
            Arg::Register(register) => Arg::Register(first_register + register),
            Arg::Access(access) => Arg::Access(numbers[*access]),
        };
        for step in &placed.pass.steps {
            let Step::Apply { kernel, inputs, outputs, flags } = step else { return None };
            let inputs = inputs.iter().map(own).collect();
            let outputs: SmallVec<[Arg; 2]> = outputs.iter().map(own).collect();
            for output in &outputs {
                if let Arg::Access(access) = output {
                    *writes.entry(*access).or_default() += 1;
                }
            }
            pass.steps.push(Step::Apply { kernel: kernel.clone(), inputs, outputs, flags: *flags });
        }
    }
    hand_on(&mut pass, writes);
    (pass.steps.len() <= MOST_STEPS && pass.accesses.len() <= MOST_STEPS).then_some(pass)
}

/// Keeps in a register what is written to memory and overwritten in the same pass.
fn hand_on(pass: &mut Pass, mut writes: BTreeMap<usize, usize>) {
    let Pass { accesses, registers, steps, .. } = pass;
    let mut held: BTreeMap<usize, usize> = BTreeMap::new();
    for step in steps {
        let Step::Apply { inputs, outputs, .. } = step else { continue };
        for input in inputs {
            if let Arg::Access(access) = input
                && let Some(register) = held.get(access)
            {
                *input = Arg::Register(*register);
            }
        }
        for output in outputs {
            let Arg::Access(access) = *output else { continue };
            let left = writes.entry(access).or_default();
            *left -= 1;
            if *left == 0 {
                held.remove(&access);
                continue;
            }
            registers.push(accesses[access].item_bytes);
            *output = Arg::Register(registers.len() - 1);
            held.insert(access, registers.len() - 1);
        }
    }
}
