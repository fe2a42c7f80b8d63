//! Fields: the flat storage of one array, and who still cares about it.
//!
//! A field is born without memory; the executor gives it an instance when the first launch that must store it runs. It
//! knows how many user handles are left (a field with none, whose launches are all in one group, is never stored), how
//! many exported pointers pin it, and the numbers of the last launches that write and touch it. It does not order
//! launches (`executor`) or decide what is stored (`fuse`).

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};

use crate::pool::{Block, Pool};
use crate::shards::layout::Layout;

/// Number of a launch in program order; launch 0 never exists, so 0 means "nothing yet".
pub type Sequence = u64;

/// Memory that holds a field.
pub enum Instance {
    /// From the pool; goes back when the field ends or swaps.
    Owned(Block),
    /// Handed over by someone else, kept alive by `keeper`.
    Foreign {
        /// First byte.
        address: usize,
        /// Ends the loan when dropped.
        keeper: Box<dyn Any + Send>,
    },
}

impl Instance {
    /// Address of the first byte.
    pub fn address(&self) -> usize {
        match self {
            Instance::Owned(block) => block.address(),
            Instance::Foreign { address, .. } => *address,
        }
    }
}

/// The storage of one array.
pub struct Field {
    number: u64,
    bytes: usize,
    handles: AtomicUsize,
    pins: AtomicUsize,
    first_touch: AtomicU64,
    last_write: AtomicU64,
    last_touch: AtomicU64,
    /// Address of the instance, 0 while there is none.
    current: AtomicUsize,
    instance: Mutex<Option<Instance>>,
    /// Where its values are, with several shards.
    layout: Mutex<Layout>,
    /// Reads of parts counted since the last large write.
    reads: AtomicU32,
    /// Whether it was not stored, but what makes it is kept (see `owed`).
    owed: AtomicBool,
    /// Whether it was so before: it is stored the second time.
    was_owed: AtomicBool,
    /// Results that are owed and would be made from it.
    debtors: AtomicUsize,
    /// Those who want to know before the program changes it.
    watchers: AtomicUsize,
    pool: Arc<Pool>,
}

impl Field {
    pub(crate) fn new(number: u64, bytes: usize, pool: Arc<Pool>, instance: Option<Instance>) -> Arc<Field> {
        if instance.is_none() {
            pool.reserve(bytes);
        }
        Arc::new(Field {
            number,
            bytes,
            handles: AtomicUsize::new(0),
            pins: AtomicUsize::new(0),
            first_touch: AtomicU64::new(0),
            last_write: AtomicU64::new(0),
            last_touch: AtomicU64::new(0),
            current: AtomicUsize::new(instance.as_ref().map_or(0, Instance::address)),
            instance: Mutex::new(instance),
            layout: Mutex::new(Layout::everywhere(bytes)),
            reads: AtomicU32::new(0),
            owed: AtomicBool::new(false),
            was_owed: AtomicBool::new(false),
            debtors: AtomicUsize::new(0),
            watchers: AtomicUsize::new(0),
            pool,
        })
    }

    /// The field's number, in order of creation.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Length in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a user handle is left.
    pub fn is_held(&self) -> bool {
        self.handles.load(Ordering::Acquire) > 0
    }

    /// Whether an exported pointer is alive.
    pub fn is_pinned(&self) -> bool {
        self.pins.load(Ordering::Acquire) > 0
    }

    /// One more exported pointer.
    pub fn pin(&self) {
        self.pins.fetch_add(1, Ordering::AcqRel);
    }

    /// One exported pointer less.
    pub fn unpin(&self) {
        self.pins.fetch_sub(1, Ordering::AcqRel);
    }

    /// Number of the first launch that reads or writes the field.
    pub(crate) fn first_touch(&self) -> Sequence {
        self.first_touch.load(Ordering::Acquire)
    }

    /// Number of the last launch that writes the field.
    pub fn last_write(&self) -> Sequence {
        self.last_write.load(Ordering::Acquire)
    }

    /// Number of the last launch that reads or writes the field.
    pub fn last_touch(&self) -> Sequence {
        self.last_touch.load(Ordering::Acquire)
    }

    /// Notes a launch; a `large` one that writes ends the count of reads of parts.
    pub(crate) fn touched_by(&self, sequence: Sequence, writes: bool, large: bool) {
        if self.first_touch() == 0 {
            self.first_touch.store(sequence, Ordering::Release);
        }
        if writes {
            if large {
                self.reads.store(0, Ordering::Relaxed);
            }
            self.last_write.store(sequence, Ordering::Release);
        }
        self.last_touch.store(sequence, Ordering::Release);
    }

    /// Where the field's values are, as of the launches that have run.
    pub(crate) fn layout(&self) -> MutexGuard<'_, Layout> {
        self.layout.lock()
    }

    /// Whether every shard holds the newest values of a range of bytes. The same on every shard once all launches that touch
    /// the field are done.
    pub fn is_everywhere(&self, bytes: &Range<usize>) -> bool {
        self.layout.lock().is_everywhere(bytes)
    }

    /// As [`Field::is_everywhere`], for the whole field.
    pub fn is_whole(&self) -> bool {
        self.layout.lock().home().is_none()
    }

    /// Counts a read of part of the field by the program; how many there were since the last large write.
    pub fn count_read(&self) -> u32 {
        self.reads.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether the memory of the field is what a program may look at and change directly: all launches on it being done, it was
    /// stored, nothing that is not would be made from it, and nobody wants to know before.
    pub fn is_settled(&self) -> bool {
        !self.is_owed() && !self.has_debtors() && !self.is_watched()
    }

    /// Whether it was not stored, and will be made when it is asked for.
    pub fn is_owed(&self) -> bool {
        self.owed.load(Ordering::Acquire)
    }

    pub(crate) fn was_owed(&self) -> bool {
        self.was_owed.load(Ordering::Acquire)
    }

    pub(crate) fn owe(&self, owed: bool) {
        self.owed.store(owed, Ordering::Release);
        self.was_owed.store(true, Ordering::Release);
    }

    /// Whether a result that is owed would be made from it.
    pub(crate) fn has_debtors(&self) -> bool {
        self.debtors() > 0
    }

    /// Number of results that are owed and would be made from it.
    pub(crate) fn debtors(&self) -> usize {
        self.debtors.load(Ordering::Acquire)
    }

    pub(crate) fn count_debtor(&self, more: bool) {
        if more {
            self.debtors.fetch_add(1, Ordering::AcqRel);
        } else {
            self.debtors.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Whether somebody wants to know before the program changes the field.
    pub fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::Acquire) > 0
    }

    /// One more, or one less, who wants to know before the program changes the field.
    pub fn watch(&self, more: bool) {
        if more {
            self.watchers.fetch_add(1, Ordering::AcqRel);
        } else {
            self.watchers.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Address of the instance, if there is one. Stable only while nothing that writes the field is in flight.
    pub fn address(&self) -> Option<usize> {
        self.instance.lock().as_ref().map(Instance::address)
    }

    /// Address of the instance, 0 if there is none: as [`Field::address`], for those who only compare.
    pub fn current_address(&self) -> usize {
        self.current.load(Ordering::Acquire)
    }

    /// Whether the instance came from the pool (only those may be swapped for another).
    pub(crate) fn is_owned(&self) -> bool {
        !matches!(*self.instance.lock(), Some(Instance::Foreign { .. }))
    }

    pub(crate) fn has_instance(&self) -> bool {
        self.instance.lock().is_some()
    }

    /// Address of the instance, made if there is none yet.
    pub fn materialize(&self) -> usize {
        let mut instance = self.instance.lock();
        match &*instance {
            Some(present) => present.address(),
            None => {
                let block = self.pool.take(self.bytes);
                let address = block.address();
                *instance = Some(Instance::Owned(block));
                self.current.store(address, Ordering::Release);
                address
            }
        }
    }

    /// Takes the pool's block away, for a field of as many bytes that nobody asks for again.
    pub(crate) fn give_up(&self) -> Option<Block> {
        let mut instance = self.instance.lock();
        match instance.take() {
            Some(Instance::Owned(block)) => {
                self.current.store(0, Ordering::Release);
                Some(block)
            }
            other => {
                *instance = other;
                None
            }
        }
    }

    /// Puts a new instance in the place of the old one, which is returned.
    pub(crate) fn swap(&self, block: Block) -> Option<Instance> {
        let mut instance = self.instance.lock();
        self.current.store(block.address(), Ordering::Release);
        instance.replace(Instance::Owned(block))
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        if !matches!(self.instance.get_mut(), Some(Instance::Foreign { .. })) {
            self.pool.release(self.bytes);
        }
    }
}

/// A user's hold on a field: as long as one exists, the field's values must be there to be looked at.
pub struct Handle(Arc<Field>);

impl Handle {
    /// A new hold.
    pub fn new(field: Arc<Field>) -> Handle {
        if field.handles.fetch_add(1, Ordering::AcqRel) == 0 {
            field.pool.hold(field.bytes);
        }
        Handle(field)
    }

    /// The field held.
    pub fn field(&self) -> &Arc<Field> {
        &self.0
    }
}

impl Clone for Handle {
    fn clone(&self) -> Handle {
        Handle::new(self.0.clone())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.0.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.pool.let_go(self.0.bytes);
        }
    }
}
