//! Shares in blocks: which groups of maps are run in rectangles of two axes, what they read of other shards' blocks, and how fields
//! come to live in blocks and back in rows.
//!
//! Owner computes, as in `share`: the largest written walk that lives in blocks is followed, else the largest read one, else blocks of
//! the largest field that lives somewhere, else of the group's own axes. A group of which some walk does not fit is run in rows, and
//! what it touches is moved to rows first: the price of the policy, which the traffic of that group shows. Decided from views,
//! layouts and program order alone.
#![expect(unsafe_code, reason = "runs exchanges of parts of fields")]

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::blocks::{BlockCut, Blocks, Matrix, Rectangle, home_in_rows};
use super::home::Home;
use super::layout::FetchedInBlocks;
use super::moves::{Moves, Traffic};
use super::runs::without;
use super::share::gather;
use super::walk::{Walk, bytes_of};
use crate::field::Field;
use crate::group::{Group, Place, Split};
use crate::launch::{Privilege, Work};
use crate::mapper::Mapper;
use crate::transport::{Transport, TransportError};
use crate::view::View;

/// Which axes of a field the leading axes of a group are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Along {
    /// The first is its rows, the second its columns.
    Both,
    /// The first is its rows.
    Rows,
    /// The first is its columns.
    Columns,
}

impl Along {
    /// A domain's rows and columns.
    fn lengths(self, domain: &[usize]) -> (usize, usize) {
        match self {
            Along::Both => (domain[0], domain[1]),
            Along::Rows => (domain[0], 1),
            Along::Columns => (1, domain[0]),
        }
    }

    /// Where in a matrix a walk begins; None where it is no rectangle of whole rows and units.
    fn place(self, matrix: &Matrix, view: &View, domain: &[usize]) -> Option<(usize, usize)> {
        let steps = |axis: usize, stride: usize| domain[axis] == 1 || view.strides[axis] == stride.cast_signed();
        let (fits, outer) = match self {
            Along::Both => (domain.len() > 1 && steps(0, matrix.pitch) && steps(1, matrix.unit), 2),
            Along::Rows => (steps(0, matrix.pitch), 1),
            Along::Columns => (steps(0, matrix.unit), 1),
        };
        if !fits {
            return None;
        }
        let mut inner = domain.to_vec();
        inner[..outer].fill(1);
        let bytes = bytes_of(&view.extent(&inner));
        let (row, column) = (bytes.start / matrix.pitch, bytes.start % matrix.pitch / matrix.unit);
        let (rows, columns) = self.lengths(domain);
        let within = bytes.start % matrix.unit + bytes.len() <= matrix.unit;
        (within && row + rows <= matrix.length.0 && column + columns <= matrix.length.1).then_some((row, column))
    }

    /// The matrix of a field through which a walk goes along such axes.
    fn matrix(self, walk: &Walk<'_>) -> Option<Matrix> {
        let (bytes, strides) = (walk.field().bytes(), &walk.view().strides);
        match self {
            Along::Both => Matrix::new(bytes, strides[0], strides[1]),
            Along::Rows => Matrix::new(bytes, strides[0], strides[0]),
            Along::Columns => Matrix::new(bytes, bytes.cast_signed(), strides[0]),
        }
    }
}

/// A group's share in blocks.
pub(crate) struct InBlocks {
    cut: BlockCut,
    along: Along,
    /// Where each field that the group touches lives while it runs, by its number, if in blocks.
    homes: FxHashMap<u64, Blocks>,
    /// What this shard runs.
    part: Rectangle,
}

impl InBlocks {
    /// This shard's range of the group's first axis and, if it is cut as well, of the second.
    pub(crate) fn ranges(&self) -> (Range<usize>, Option<Range<usize>>) {
        let Rectangle { rows, columns } = self.part.clone();
        match self.along {
            Along::Both => (rows, Some(columns)),
            Along::Rows if columns.is_empty() => (0..0, None),
            Along::Rows => (rows, None),
            Along::Columns if rows.is_empty() => (0..0, None),
            Along::Columns => (columns, None),
        }
    }

    /// The bytes that this shard's second instance of a field needs of the first: what lives here, and what is read here.
    pub(crate) fn carries<T>(&self, group: &Group<T>, index: usize, shard: usize) -> Vec<Range<usize>> {
        let field = &group.buffers[index].field;
        let all = 0..field.bytes();
        let Some(blocks) = self.homes.get(&field.number()) else { return Vec::from([all]) };
        let mut runs = blocks.matrix.runs(&blocks.block(shard));
        for walk in walks(group).filter(|walk| walk.reads && walk.place == Place::Buffer(index)) {
            if let Some(place) = self.along.place(&blocks.matrix, walk.walk.view(), walk.walk.domain) {
                blocks.matrix.add_runs(&self.cut.touched(shard, place), &all, &mut runs);
            }
        }
        runs
    }
}

/// A walk with where its operand lives while the group runs, and whether it reads what was there before the group.
struct Touch<'a> {
    walk: Walk<'a>,
    place: Place,
    reads: bool,
    reads_old: bool,
}

fn walks<T>(group: &Group<T>) -> impl Iterator<Item = Touch<'_>> {
    let mut made: Vec<u64> = Vec::new();
    group.members.iter().flat_map(move |member| {
        let touches: Vec<Touch<'_>> = member
            .launch
            .operands
            .iter()
            .zip(&member.places)
            .map(|(operand, place)| {
                let reads = operand.privilege != Privilege::Write;
                // Members of one pass agree on every element that they share, so what one has made is where it is read.
                let reads_old = reads && !made.contains(&operand.field.number());
                Touch { walk: Walk::new(member, operand), place: *place, reads, reads_old }
            })
            .collect();
        made.extend(member.launch.operands.iter().filter(|o| o.privilege.writes()).map(|o| o.field.number()));
        touches
    })
}

/// Whether a walk goes over most of both axes of a matrix, so that blocks of that are balanced.
fn is_most(matrix: &Matrix, (rows, columns): (usize, usize)) -> bool {
    rows * 2 > matrix.length.0 && columns * 2 > matrix.length.1
}

/// How a group is run in blocks; None where it is not.
pub(crate) fn decide<T>(group: &Group<T>, mapper: &Mapper, transport: &dyn Transport) -> Option<InBlocks> {
    let domain = &group.members.first()?.launch.domain;
    let alike = group.members.iter().all(|member| {
        member.launch.work == Work::Map && member.shift == 0 && member.pass == 0 && member.launch.domain == *domain
    });
    if !alike || group.split != Split::Rows || domain.is_empty() || domain.contains(&0) {
        return None;
    }
    let touches: Vec<Touch<'_>> = walks(group).collect();
    if touches.iter().any(|touch| touch.walk.operand.privilege.writes() && touch.walk.field().is_pinned()) {
        return None;
    }
    let shards = transport.shards();
    let (cut, along) = follow(&touches, domain, group.elements() >= mapper.min_spread(shards).max(2), shards)?;
    let mut homes: FxHashMap<u64, Blocks> = FxHashMap::default();
    for touch in touches.iter().filter(|touch| touch.walk.operand.privilege.writes() || touch.reads_old) {
        let (walk, writes) = (&touch.walk, touch.walk.operand.privilege.writes());
        let number = walk.field().number();
        let (lives, is_everywhere, home) = {
            let layout = walk.field().layout();
            (layout.blocks(), layout.is_everywhere(&walk.bytes()), layout.home())
        };
        let covers = walk.view().covered_bytes(domain) == walk.field().bytes();
        let replaced = writes && covers && walk.operand.privilege == Privilege::Write && !homes.contains_key(&number);
        let known = homes.get(&number).copied().or(lives.filter(|_| !replaced));
        match known {
            Some(blocks) => {
                let place = along.place(&blocks.matrix, walk.view(), domain)?;
                if writes && cut.home(blocks.matrix, place) != Some(blocks) {
                    return None;
                }
                homes.insert(number, blocks);
            }
            None if !writes && (is_everywhere || is_slight(walk, group.elements())) => {}
            None => {
                let matrix = along.matrix(walk)?;
                let place = along.place(&matrix, walk.view(), domain)?;
                let moves = home.is_some() && !replaced;
                let is_most = along == Along::Both && is_most(&matrix, along.lengths(domain));
                if (moves || !covers) && !is_most {
                    return None;
                }
                homes.insert(number, cut.home(matrix, place)?);
            }
        }
    }
    // A walk that was looked at before its field was written must fit as well.
    let fits = |touch: &Touch<'_>| match homes.get(&touch.walk.field().number()) {
        Some(blocks) => along.place(&blocks.matrix, touch.walk.view(), domain).is_some(),
        None => true,
    };
    if !touches.iter().all(fits) {
        return None;
    }
    (!homes.is_empty()).then(|| InBlocks { part: cut.part(transport.shard()), cut, along, homes })
}

/// Whether a walk reads so little that every shard may have all of it.
fn is_slight(walk: &Walk<'_>, elements: usize) -> bool {
    const FRACTION: usize = 16;
    walk.field().layout().blocks().is_none() && walk.bytes().len() * FRACTION <= elements * walk.view().item_bytes
}

/// The cut of a group and the axes of fields that it cuts: those of what lives in blocks, else (in a `large` group) new ones.
fn follow(touches: &[Touch<'_>], domain: &[usize], large: bool, shards: usize) -> Option<(BlockCut, Along)> {
    let size = |touch: &&Touch<'_>| touch.walk.extent.end - touch.walk.extent.start;
    let follows = |touch: &Touch<'_>| {
        let blocks = touch.walk.field().layout().blocks()?;
        let along = [Along::Both, Along::Rows, Along::Columns]
            .into_iter()
            .find_map(|along| Some((along, along.place(&blocks.matrix, touch.walk.view(), domain)?)));
        let (along, place) = along?;
        Some((BlockCut::following(&blocks, place, along.lengths(domain))?, along))
    };
    let writes = |touch: &&Touch<'_>| touch.walk.operand.privilege.writes();
    let candidate = |written: bool| {
        let wanted = touches.iter().filter(|touch| writes(touch) == written && (written || touch.reads_old));
        wanted.filter_map(|touch| Some((size(&touch), follows(touch)?))).max_by_key(|(size, _)| *size)
    };
    if let Some((_, found)) = candidate(true).or_else(|| candidate(false)) {
        return Some(found);
    }
    if !large || domain.len() < 2 {
        return None;
    }
    // Nothing lives in blocks yet: those of the largest field of which the group walks most but not all, or else its own.
    let inner = |touch: &Touch<'_>| {
        let matrix = Along::Both.matrix(&touch.walk)?;
        let place = Along::Both.place(&matrix, touch.walk.view(), domain)?;
        let lengths = Along::Both.lengths(domain);
        let blocks = BlockCut::natural(matrix.length, shards).home(matrix, (0, 0))?;
        is_most(&matrix, lengths).then_some(())?;
        BlockCut::following(&blocks, place, lengths)
    };
    let fields = touches.iter().filter(|touch| writes(touch) || touch.reads_old);
    let found =
        fields.filter_map(|touch| Some((touch.walk.field().bytes(), inner(touch)?))).max_by_key(|(size, _)| *size);
    let cut = found.map_or_else(|| BlockCut::natural((domain[0], domain[1]), shards), |(_, cut)| cut);
    // Where blocks are rows, the other policy does the same with less ado.
    (!cut.is_of_rows()).then_some((cut, Along::Both))
}

/// Has what a group touches live where its share says, receives what this shard's part reads, and sends what others' parts read of it.
pub(crate) fn begin<T>(
    group: &Group<T>,
    share: &InBlocks,
    transport: &dyn Transport,
    traffic: &Traffic,
) -> Result<(), TransportError> {
    let mut read: Vec<(&Arc<Field>, Vec<&Walk<'_>>)> = Vec::new();
    let touches: Vec<Touch<'_>> = walks(group).collect();
    for touch in &touches {
        let (walk, field) = (&touch.walk, touch.walk.field());
        let home = field.layout().home();
        let Some(target) = share.homes.get(&field.number()) else {
            if touch.reads_old {
                gather(field, &walk.bytes(), transport, traffic)?;
            }
            continue;
        };
        // What is read, or written in part, must be in its block first; a field that is written whole is not.
        let keeps = touch.reads_old || walk.view().covered_bytes(walk.domain) < field.bytes();
        if let Some(home) = home.filter(|_| keeps) {
            change(field, target, &home, true, transport, traffic)?;
        }
        let is_apart = {
            let layout = field.layout();
            layout.blocks().is_some() && !layout.is_everywhere(&walk.bytes())
        };
        if touch.reads_old && is_apart {
            match read.iter_mut().find(|(known, _)| known.number() == field.number()) {
                Some((_, walks)) => walks.push(walk),
                None => read.push((field, vec![walk])),
            }
        }
    }
    let mut moves = Moves::default();
    for (field, walks) in read {
        fetch(field, &walks, share, transport.shard(), &mut moves);
    }
    // SAFETY: the executor's running role is the only one that touches instances; runs lie inside their fields, and what is
    // received lives elsewhere while what is sent lives here, so they do not overlap.
    unsafe { moves.run(transport, traffic) }
}

/// Lists what goes between this shard and others when each needs its part of the walks.
fn fetch(field: &Arc<Field>, walks: &[&Walk<'_>], share: &InBlocks, shard: usize, moves: &mut Moves) {
    let mut layout = field.layout();
    let Some(blocks) = layout.blocks() else { return };
    let matrix = &blocks.matrix;
    let fetched =
        |walk: &Walk<'_>| FetchedInBlocks { cut: share.cut, view: walk.view().clone(), domain: walk.domain.clone() };
    let fresh: Vec<&&Walk<'_>> = walks.iter().filter(|walk| !layout.is_fetched_in_blocks(&fetched(walk))).collect();
    let places: Vec<(usize, usize)> =
        fresh.iter().filter_map(|walk| share.along.place(matrix, walk.view(), walk.domain)).collect();
    let own = blocks.block(shard);
    let all = 0..field.bytes();
    let needs = |of: usize, of_block: &Rectangle| {
        let mut runs = Vec::new();
        for place in &places {
            matrix.add_runs(&share.cut.touched(of, *place).overlap(of_block), &all, &mut runs);
        }
        without(&runs, layout.shared())
    };
    let mut takers: Vec<usize> = places.iter().flat_map(|place| share.cut.shards_touching(&own, *place)).collect();
    let mut givers: Vec<usize> =
        places.iter().flat_map(|place| blocks.shards_of(&share.cut.touched(shard, *place))).collect();
    for list in [&mut takers, &mut givers] {
        list.sort_unstable();
        list.dedup();
        list.retain(|other| *other != shard);
    }
    let address = field.materialize();
    for taker in takers {
        moves.send(taker, address, &needs(taker, &own));
    }
    for giver in givers {
        moves.receive(giver, address, &needs(shard, &blocks.block(giver)));
    }
    let fetched: Vec<FetchedInBlocks> = fresh.iter().map(|walk| fetched(walk)).collect();
    fetched.into_iter().for_each(|walk| layout.fetch_in_blocks(walk));
}

/// Notes where what the group wrote lives now.
pub(crate) fn end<T>(group: &Group<T>, share: &InBlocks) {
    let renewed = |number: u64| group.buffers.iter().any(|buffer| buffer.second && buffer.field.number() == number);
    for touch in walks(group).filter(|touch| matches!(touch.place, Place::Buffer(_))) {
        let number = touch.walk.field().number();
        if let Some(blocks) = share.homes.get(&number).filter(|_| touch.walk.operand.privilege.writes()) {
            touch.walk.field().layout().write_in_blocks(*blocks, &touch.walk.extent, renewed(number));
        }
    }
}

/// Moves what a group touches and lives in blocks to a home of rows.
pub(crate) fn to_rows<T>(group: &Group<T>, transport: &dyn Transport, traffic: &Traffic) -> Result<(), TransportError> {
    for operand in group.operands() {
        let blocks = operand.field.layout().blocks();
        if let Some(blocks) = blocks {
            let home = home_in_rows(&blocks.matrix, transport.shards());
            change(&operand.field, &blocks, &home, false, transport, traffic)?;
        }
    }
    Ok(())
}

/// Moves a field between its home of rows and blocks.
fn change(
    field: &Arc<Field>,
    blocks: &Blocks,
    home: &Home,
    to_blocks: bool,
    transport: &dyn Transport,
    traffic: &Traffic,
) -> Result<(), TransportError> {
    let (shard, bytes, address) = (transport.shard(), field.bytes(), field.materialize());
    let mut moves = Moves::default();
    {
        let mut layout = field.layout();
        let (block, range) = (blocks.block(shard), home.range(shard, bytes));
        let shared = |rectangle: &Rectangle, range: &Range<usize>| {
            let mut runs = Vec::new();
            blocks.matrix.add_runs(rectangle, range, &mut runs);
            without(&runs, layout.shared())
        };
        let mut carry = |other: usize, runs: &[Range<usize>], sends: bool| {
            if sends { moves.send(other, address, runs) } else { moves.receive(other, address, runs) }
        };
        let rows = Rectangle {
            rows: range.start / blocks.matrix.pitch..range.end.div_ceil(blocks.matrix.pitch),
            columns: 0..blocks.matrix.length.1,
        };
        // The shards with blocks in this one's rows, and those with rows of this one's block.
        for other in blocks.shards_of(&if range.is_empty() { Rectangle { rows: 0..0, columns: 0..0 } } else { rows }) {
            if other != shard {
                carry(other, &shared(&blocks.block(other), &range), to_blocks);
            }
        }
        let own = blocks.matrix.runs(&block);
        let span = own.first().map_or(0, |run| run.start)..own.last().map_or(0, |run| run.end);
        for other in home.shards_of(&span) {
            if other != shard {
                carry(other, &shared(&block, &home.range(other, bytes)), !to_blocks);
            }
        }
        if to_blocks { layout.move_to_blocks(*blocks) } else { layout.move_to_rows(*home) }
    }
    // SAFETY: as in `begin`.
    unsafe { moves.run(transport, traffic) }
}
