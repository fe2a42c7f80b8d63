//! What a group stores: what nobody can ask for is a temporary, and what the program holds may be owed.
//!
//! The decision looks at what the program holds; nothing that is sent depends on it. How what is owed is made again is in `owed`.

use rustc_hash::{FxHashMap, FxHashSet};

use super::align::row_of;
use super::{Draft, Touch};
use crate::group::Member;
use crate::launch::{Launch, Privilege, Work};
use crate::owed::{self, Coming, Owed, Terms};

impl<T: Clone> Draft<T> {
    /// The fields that need not be stored, and those among them of which the program must be able to get the values.
    pub(super) fn unstored(&self, terms: Option<(&Terms<'_, T>, &Coming)>) -> (FxHashSet<u64>, Vec<Owed<T>>) {
        let launches: Vec<&Launch<T>> = self.members.iter().map(|member| &member.launch).collect();
        // Repeated launches have no number, and those of one recipe may be in two groups.
        let first_sequence = launches.iter().map(|launch| launch.sequence).find(|sequence| *sequence > 0);
        let last_sequence = launches.iter().rev().map(|launch| launch.sequence).find(|sequence| *sequence > 0);
        let cut_short = launches[launches.len() - 1].to_come > 1;
        let (mut unstored, mut owed) = (FxHashSet::default(), Vec::new());
        let mut makers: FxHashMap<u64, usize> = FxHashMap::default();
        // What results that are owed would be made from.
        let mut kept: FxHashSet<u64> = FxHashSet::default();
        for operand in launches.iter().flat_map(|launch| &launch.operands) {
            let (field, number) = (&operand.field, operand.field.number());
            let touches = &self.touches[&number];
            // Nothing else knows what a recipe makes on its way.
            let repeats = !field.was_owed() && touches.iter().all(|touch| launches[touch.member].to_come > 0);
            // Earlier groups of the window have not run yet: what they store has no instance now, but will.
            let is_new = match (first_sequence, last_sequence) {
                _ if repeats => !cut_short,
                (Some(first), Some(last)) => field.first_touch() >= first && field.last_touch() <= last,
                _ => false,
            };
            let remains = terms.is_some_and(|(terms, _)| terms.keeps_made)
                && field.is_owed()
                && !field.has_debtors()
                && launches[touches[0].member].to_come > 0
                && last_sequence.is_some_and(|last| field.last_touch() <= last);
            let may_be = (is_new || remains)
                && !unstored.contains(&number)
                && !kept.contains(&number)
                && !field.has_instance()
                && !self.renamed.contains_key(&number)
                && may_stay_unstored(touches, &self.members);
            if !may_be {
                continue;
            }
            let made_once = touches.iter().filter(|touch| touch.writes).count() == 1;
            if !field.is_held() {
                unstored.insert(number);
                if made_once {
                    makers.insert(number, touches[0].member);
                }
                continue;
            }
            let Some((terms, coming)) = terms else { continue };
            let made = touches[0].member;
            let written = &launches[made].operands[touches[0].operand];
            let whole = written.privilege == Privilege::Write
                && written.view.covered_bytes(&launches[made].domain) == field.bytes();
            let wanted = field.bytes() >= terms.least_bytes && (remains || !field.was_owed()) && !field.is_pinned();
            if !(wanted && whole && made_once && touches.len() > 1) {
                continue;
            }
            let maker = |number: u64| makers.get(&number).copied();
            let changes = |number: u64| {
                coming.change(number)
                    || self.touches[&number].iter().any(|touch| touch.writes)
                        && !owed.iter().any(|known: &Owed<T>| known.field.number() == number)
                        && !(terms.keeps_made && self.makes_first(number))
            };
            let entry = owed::owe(&launches, made, terms, &maker, &changes);
            if let Some(entry) = entry.filter(|entry| !remains || entry.is_next_to_nothing()) {
                let is_owed = |number: u64| owed.iter().any(|known| known.field.number() == number);
                for source in entry.sources.iter().map(|source| source.number()).filter(|source| !is_owed(*source)) {
                    makers.remove(&source);
                    unstored.remove(&source);
                    kept.insert(source);
                }
                unstored.insert(number);
                owed.push(entry);
            }
        }
        (unstored, owed)
    }

    /// Whether a field is written once here, before all else is done with it.
    fn makes_first(&self, number: u64) -> bool {
        let touches = &self.touches[&number];
        touches[0].writes && touches[1..].iter().all(|touch| !touch.writes) && !self.renamed.contains_key(&number)
    }
}

/// Whether all touches of a field agree which of its rows belongs to a row of the group (so that a chunk can hold it).
fn may_stay_unstored<T>(touches: &[Touch], members: &[Member<T>]) -> bool {
    let first = &touches[0];
    let writer = &members[first.member].launch;
    if !first.writes || writer.work == Work::Total || writer.folds_rows() {
        return false;
    }
    let stride = writer.operands[first.operand].view.row_stride();
    let row = |touch: &Touch| {
        let launch = &members[touch.member].launch;
        let agrees = launch.operands[touch.operand].view.row_stride() == stride;
        agrees.then(|| row_of(&touch.row_extent, stride)).flatten().map(|row| row - touch.shift)
    };
    touches.iter().all(|touch| members[touch.member].launch.rows() == 1)
        || (stride > 0 && row(first).is_some() && touches.iter().all(|touch| row(touch) == row(first)))
}
