//! Runs: the bytes of a field that part of a walk touches, as contiguous ranges in increasing order.
//!
//! What a message carries is a list of runs that both ends compute. Work is proportional to the runs inside the clip, not to
//! the walk. When newest values are sent, runs with small gaps are joined: the gap's bytes are newest too and do no harm.

use std::ops::Range;

use smallvec::SmallVec;

use crate::view::View;

/// Gaps of at most this many bytes are carried along with newest values.
pub(crate) const SMALL_GAP: usize = 64;

/// An axis of a walk put in order: its stride, and its length.
type Axis = (usize, usize);

/// Adds the runs of `view` over `domain` that lie in `clip`, joined with what is in `runs` already; `runs` is in order. Runs
/// with at most `gap` bytes between them become one.
pub(crate) fn add_runs(view: &View, domain: &[usize], clip: &Range<usize>, gap: usize, runs: &mut Vec<Range<usize>>) {
    if clip.is_empty() || domain.contains(&0) {
        return;
    }
    let mut start = view.offset;
    let mut axes: SmallVec<[Axis; 4]> = SmallVec::new();
    for (length, stride) in domain.iter().zip(&view.strides) {
        if *length > 1 && *stride != 0 {
            if *stride < 0 {
                start += (*length as isize - 1) * stride;
            }
            axes.push((stride.unsigned_abs(), *length));
        }
    }
    axes.sort_unstable_by(|left, right| right.cmp(left));
    // Inner axes without real gaps are one stretch.
    let mut stretch = view.item_bytes;
    while let Some((stride, length)) = axes.last() {
        if *stride > stretch + gap {
            break;
        }
        stretch += stride * (length - 1);
        axes.pop();
    }
    let before = runs.len();
    walk(&axes, start as usize, stretch, clip, gap, runs);
    if before > 0 || axes.len() > 1 {
        normalize(runs, gap);
    }
}

/// Bytes that axes reach over, from the first byte on.
fn reach(axes: &[Axis], stretch: usize) -> usize {
    axes.iter().map(|(stride, length)| stride * (length - 1)).sum::<usize>() + stretch
}

fn walk(axes: &[Axis], start: usize, stretch: usize, clip: &Range<usize>, gap: usize, runs: &mut Vec<Range<usize>>) {
    let Some(((stride, length), inner)) = axes.split_first() else {
        let low = start.max(clip.start);
        let high = (start + stretch).min(clip.end);
        if low < high {
            match runs.last_mut() {
                Some(last) if last.start <= low && low <= last.end + gap => last.end = last.end.max(high),
                Some(_) | None => runs.push(low..high),
            }
        }
        return;
    };
    let within = reach(inner, stretch);
    let first = (clip.start + 1).saturating_sub(start + within).div_ceil(*stride);
    let last = clip.end.saturating_sub(start).div_ceil(*stride).min(*length);
    for index in first..last {
        walk(inner, start + index * stride, stretch, clip, gap, runs);
    }
}

/// Brings runs in order and joins those that touch.
fn normalize(runs: &mut Vec<Range<usize>>, gap: usize) {
    if runs.windows(2).all(|pair| pair[0].end < pair[1].start) {
        return;
    }
    runs.sort_unstable_by_key(|run| run.start);
    let mut kept = 0;
    for index in 1..runs.len() {
        if runs[index].start <= runs[kept].end + gap {
            runs[kept].end = runs[kept].end.max(runs[index].end);
        } else {
            kept += 1;
            runs[kept] = runs[index].clone();
        }
    }
    runs.truncate(kept + 1);
}

/// What is left of `runs` outside `holes` (both in order).
pub(crate) fn without(runs: &[Range<usize>], holes: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut left = Vec::new();
    for run in runs {
        let mut start = run.start;
        for hole in holes.iter().filter(|hole| hole.end > run.start && hole.start < run.end) {
            if hole.start > start {
                left.push(start..hole.start);
            }
            start = start.max(hole.end);
        }
        if start < run.end {
            left.push(start..run.end);
        }
    }
    left
}

/// Adds a range to ordered ranges.
pub(crate) fn insert(ranges: &mut Vec<Range<usize>>, range: Range<usize>) {
    if range.is_empty() {
        return;
    }
    ranges.push(range);
    ranges.sort_unstable_by_key(|range| range.start);
    let mut kept = 0;
    for index in 1..ranges.len() {
        if ranges[index].start <= ranges[kept].end {
            ranges[kept].end = ranges[kept].end.max(ranges[index].end);
        } else {
            kept += 1;
            ranges[kept] = ranges[index].clone();
        }
    }
    ranges.truncate(kept + 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    fn runs_of(view: &View, domain: &[usize], clip: Range<usize>) -> Vec<Range<usize>> {
        let mut runs = Vec::new();
        add_runs(view, domain, &clip, SMALL_GAP, &mut runs);
        runs
    }

    #[test]
    fn a_block_of_columns_is_a_run_for_each_row_inside_the_clip() {
        let columns = View { offset: 800, strides: smallvec![8, 4000], item_bytes: 8 };
        let runs = runs_of(&columns, &[50, 10], 4000..12_000);
        assert_eq!(runs, vec![4800..5200, 8800..9200]);
        assert_eq!(runs_of(&columns, &[50, 10], 4900..4908), vec![4900..4908]);
    }

    #[test]
    fn neighbours_of_a_stencil_join() {
        let mut runs = Vec::new();
        for offset in [800, 808, 816] {
            let view = View { offset, strides: smallvec![800, 8], item_bytes: 8 };
            add_runs(&view, &[2, 98], &(0..4000), SMALL_GAP, &mut runs);
        }
        assert_eq!(runs, vec![800..2400]);
    }

    #[test]
    fn backward_walks_are_put_in_order() {
        let view = View { offset: 3600, strides: smallvec![-400], item_bytes: 8 };
        assert_eq!(runs_of(&view, &[10], 0..900), vec![0..8, 400..408, 800..808]);
    }

    #[test]
    fn holes_are_left_out() {
        assert_eq!(without(&[0..10, 20..30], &[5..8, 9..25]), vec![0..5, 8..9, 25..30]);
        let mut ranges = vec![0..5, 10..20];
        insert(&mut ranges, 5..10);
        assert_eq!(ranges, vec![0..20]);
    }
}
