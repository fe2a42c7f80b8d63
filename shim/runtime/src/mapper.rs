//! The mapper: every number that changes how a program is run, but never what it computes.
//!
//! Tunables only; each says what it trades. The shim fills them from the command line.

/// Answers to "how many, how large, how far ahead".
#[derive(Clone, Debug)]
pub struct Mapper {
    /// Worker threads.
    pub cpus: usize,
    /// Processors that tiles are cut for; more than `cpus` in tests, so that small machines cut as large ones do.
    pub processors: usize,
    /// Fewest elements worth a tile; arrays below it are host arrays. Also the fewest worth a shard's part of an array: where parts
    /// would be smaller and every shard has what an operation reads, each does all of it.
    pub min_tile: usize,
    /// Steps of exchanges that sharing out arrays of a size may cost beyond what it saves, until they stay whole on every shard.
    pub most_steps: usize,
    /// Launches after which a window closes.
    pub window: usize,
    /// Closed windows that may wait to be run before issue waits.
    pub run_ahead: usize,
    /// Whether launches are joined.
    pub fusion: bool,
    /// Whether several shards cut maps over two or more axes into blocks: neighbours exchange less, and whatever needs rows, as sums
    /// in NumPy's order do, has whole arrays moved.
    pub blocks: bool,
    /// Bytes that fields may reserve.
    pub memory_limit: usize,
    /// Whether groups are kept as text.
    pub show_plan: bool,
}

/// Tiles for each processor: a few, so that a processor that the system slows down does not hold up the rest.
const TILES_PER_PROCESSOR: usize = 4;

/// Tiles that one thread has done with before another one is awake, if no element takes longer than to read it.
const BRIEF_TILES: usize = 4;

/// Least part of a row that a tile of columns reads: a page.
const LEAST_RUN_BYTES: usize = 4096;

/// Fields of which no cache keeps much until they are read again.
const BEYOND_CACHE_BYTES: usize = 16 << 20;

/// Rows that a sweep does at a time: enough that going over to the next sweep costs little, and few enough to stay in a core's own
/// cache.
const SWEEP_BYTES: usize = 112 << 10;

/// Rows that joined sweeps keep between them: what a core has of the second and third caches.
const RINGS_BYTES: usize = 2 << 20;

/// Elements that no number of shards keeps each for itself: memory and work on them would not shrink with more shards.
const MOST_COPIED: usize = 1 << 20;

impl Mapper {
    /// Tiles that a group of `rows` rows with `row_elements` elements each is cut into.
    pub fn colours(&self, rows: usize, row_elements: usize) -> usize {
        let least = (self.min_tile / row_elements.max(1)).max(1);
        (rows / least).clamp(1, self.processors * if self.min_tile > 1 { TILES_PER_PROCESSOR } else { 1 })
    }

    /// Tiles that a group is cut into by its columns, each of them a pass over `rows` rows: so few and wide that memory is read in
    /// long runs. `row_bytes` is what the columns of a row take.
    pub(crate) fn column_colours(&self, columns: usize, rows: usize, row_bytes: usize) -> usize {
        let finest = self.colours(columns, rows);
        if self.min_tile == 1 {
            return finest;
        }
        finest.min(row_bytes / LEAST_RUN_BYTES).clamp(1, self.processors)
    }

    /// Whether so many steps, each for one element and no longer than reading it, are done before another thread is awake.
    pub(crate) fn is_brief(&self, steps: usize) -> bool {
        self.min_tile > 1 && steps < self.min_tile * BRIEF_TILES
    }

    /// Bytes from which a result that can be made again need not be stored: what no cache holds.
    pub(crate) fn min_owed(&self) -> usize {
        if self.min_tile > 1 { BEYOND_CACHE_BYTES } else { 16 }
    }

    /// Bytes of rows that a sweep does before the next one goes on.
    pub(crate) fn sweep_bytes(&self) -> usize {
        if self.min_tile > 1 { SWEEP_BYTES } else { 1 }
    }

    /// Most bytes of rows that joined sweeps keep between them.
    pub(crate) fn rings_bytes(&self) -> usize {
        RINGS_BYTES
    }

    /// Elements from which an operation on what every shard has is shared out.
    pub(crate) fn min_spread(&self, shards: usize) -> usize {
        self.min_tile.saturating_mul(shards).min(self.always_spread())
    }

    /// Elements from which arrays are shared out, whatever it costs.
    pub(crate) fn always_spread(&self) -> usize {
        self.min_tile.max(MOST_COPIED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_not_smaller_than_the_least() {
        let mapper = Mapper {
            cpus: 2,
            processors: 2,
            min_tile: 1000,
            most_steps: usize::MAX,
            window: 64,
            run_ahead: 4,
            fusion: true,
            blocks: false,
            memory_limit: usize::MAX,
            show_plan: false,
        };
        assert_eq!(mapper.colours(10, 100), 1);
        assert_eq!(mapper.colours(20, 100), 2);
        assert_eq!(mapper.colours(1_000_000, 1), 8);
        assert_eq!(Mapper { min_tile: 1, processors: 3, ..mapper }.colours(5, 1), 3);
    }
}
