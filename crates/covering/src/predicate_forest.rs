//! The predicates of one attribute, ordered by covering.
//!
//! What a conjunction says of the attribute is a predicate, seen as the [`Span`](crate::span::Span) of its values. Equal
//! predicates lie together, and the order is such that both those that may cover a given predicate and those that it may
//! cover are a few ranges, found by binary search:
//!
//! - `>=` (or `<=`) is a chain: each predicate covers all that follow (or precede) it;
//! - points lie in the order of their values, so that those under a range follow one another;
//! - intervals are grouped by how many digits their two ends have in common. Those that hold a value begin, in each group, in
//!   the cell of so many digits that holds the value, and not behind it. A prefix of a string is such an interval: it lies
//!   with the other prefixes of its length.
//!
//! So the forest is kept without nodes and edges: a sorted list is a chain, and a binary search walks it.
//!
//! The list is cut into blocks. Only the first key of each is kept; a block is not sorted within, so that a user takes eight
//! bytes, and what is looked up is a few users more than asked for. They are candidates, to be verified in any case.

use crate::directory::reserve_little;
use crate::span::{Code, Group, Keys};
use std::ops::Range;

/// Somebody who has a predicate on the attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct User {
    /// The number the owner of the forest knows it by.
    pub(crate) id: u32,
    /// Tells at a glance that it has nothing to do with another conjunction.
    pub(crate) signature: u32,
}

/// The place of a predicate in the order.
pub(crate) type Key = (Group, Code);

/// See the [module page](self). A block with more than `MAX_BLOCK` users is cut in half.
#[derive(Clone, Debug, Default)]
pub(crate) struct PredicateForest<const MAX_BLOCK: usize> {
    /// Sorted by their first keys.
    blocks: Vec<Block>,
    /// How many users each group has, sorted; none of them 0.
    groups: Vec<(Group, usize)>,
}

#[derive(Clone, Debug)]
struct Block {
    /// Not greater than the key of any user here or in a later block, and greater than those before.
    first: (Key, u32),
    users: Vec<User>,
}

impl<const MAX_BLOCK: usize> PredicateForest<MAX_BLOCK> {
    /// Two neighbours with at most so many users in all become one.
    const MIN_BLOCK: usize = MAX_BLOCK / 2;

    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// How many users there are.
    pub(crate) fn len(&self) -> usize {
        self.groups.iter().map(|(_, users)| users).sum()
    }

    /// All users, in the order of their blocks.
    pub(crate) fn all_users(&self) -> impl Iterator<Item = &User> {
        self.blocks.iter().flat_map(|block| &block.users)
    }

    /// Adds a user of a predicate. `key_of` says the key of any user, and `rank_of`, which is faster, a number that orders users
    /// as their keys do but for ties.
    pub(crate) fn insert(&mut self, user: User, key: Key, rank_of: impl Fn(u32) -> u64, key_of: impl Fn(u32) -> Key) {
        match self.groups.binary_search_by_key(&key.0, |(group, _)| *group) {
            Ok(index) => self.groups[index].1 += 1,
            Err(index) => self.groups.insert(index, (key.0, 1)),
        }
        let full_key = (key, user.id);
        if self.blocks.is_empty() {
            self.blocks.push(Block { first: full_key, users: vec![user] });
            return;
        }
        let index = self.block_of(&full_key);
        let block = &mut self.blocks[index];
        if full_key < block.first {
            block.first = full_key;
        }
        reserve_little(&mut block.users);
        block.users.push(user);
        if block.users.len() > MAX_BLOCK {
            self.cut(index, rank_of, key_of);
        }
    }

    /// Removes a user that [`insert`](Self::insert) was told of under the same key.
    pub(crate) fn remove(&mut self, id: u32, key: Key) {
        if let Ok(index) = self.groups.binary_search_by_key(&key.0, |(group, _)| *group) {
            self.groups[index].1 -= 1;
            if self.groups[index].1 == 0 {
                self.groups.remove(index);
            }
        }
        let index = self.block_of(&(key, id));
        let users = &mut self.blocks[index].users;
        let at = users.iter().position(|user| user.id == id).expect("users are in the block of their key");
        users.swap_remove(at);
        if users.is_empty() {
            self.blocks.remove(index);
        } else if users.len() <= Self::MIN_BLOCK {
            self.join(index);
        }
    }

    /// Cuts a block in half.
    fn cut(&mut self, index: usize, rank_of: impl Fn(u32) -> u64, key_of: impl Fn(u32) -> Key) {
        let mut users: Vec<(u64, User)> =
            self.blocks[index].users.iter().map(|user| (rank_of(user.id), *user)).collect();
        users.sort_unstable();
        let middle = users.len() / 2;
        let rank = users[middle].0;
        // Where to cut between those of one rank, their keys decide.
        let begin = users.partition_point(|(lesser, _)| *lesser < rank);
        let tied = &mut users[begin..];
        let end = tied.partition_point(|(same, _)| *same == rank);
        let mut exact: Vec<((Key, u32), User)> =
            tied[..end].iter().map(|(_, user)| ((key_of(user.id), user.id), *user)).collect();
        exact.sort_unstable();
        for ((_, user), (_, exact)) in tied.iter_mut().zip(&exact) {
            *user = *exact;
        }
        let first = exact.swap_remove(middle - begin).0;
        let half = |users: &[(u64, User)]| users.iter().map(|(_, user)| *user).collect();
        self.blocks[index].users = half(&users[..middle]);
        self.blocks.insert(index + 1, Block { first, users: half(&users[middle..]) });
    }

    /// Joins a block with the next one if both are small, and lets go of memory it no longer needs.
    fn join(&mut self, index: usize) {
        let has_small_neighbour = |left: usize| {
            self.blocks
                .get(left)
                .zip(self.blocks.get(left + 1))
                .is_some_and(|(left, right)| left.users.len() + right.users.len() <= Self::MIN_BLOCK)
        };
        let left = [Some(index), index.checked_sub(1)].into_iter().flatten().find(|&left| has_small_neighbour(left));
        let index = match left {
            Some(left) => {
                let right = self.blocks.remove(left + 1);
                self.blocks[left].users.extend(right.users);
                left
            }
            None => index,
        };
        let users = &mut self.blocks[index].users;
        if users.len() < users.capacity() / 2 {
            users.shrink_to(users.len() + users.len() / 8);
        }
    }

    /// The block that holds a key, or would.
    fn block_of(&self, key: &(Key, u32)) -> usize {
        self.blocks.partition_point(|block| block.first <= *key).saturating_sub(1)
    }

    /// The blocks with what `keys` names, group by group, ascending and apart, and how many users are in them.
    pub(crate) fn find(&self, keys: impl Fn(Group) -> Option<Keys>) -> Found {
        let mut found = Found::default();
        for &(group, _) in &self.groups {
            let Some((first, last)) = keys(group) else { continue };
            let begin = self.block_of(&((group, first), 0));
            let last = ((group, last), u32::MAX);
            let end = self.blocks.partition_point(|block| block.first <= last);
            let visited = found.runs.last().map_or(0, |run: &Range<usize>| run.end);
            let run = begin.max(visited)..end;
            if run.is_empty() {
                continue;
            }
            let blocks = &self.blocks[run.clone()];
            let users = |blocks: &[Block]| blocks.iter().map(|block| block.users.len()).sum::<usize>();
            found.users += users(blocks);
            found.inner_users += blocks.get(1..blocks.len() - 1).map_or(0, users);
            found.runs.push(run);
        }
        found
    }

    /// The users in some of its blocks.
    pub(crate) fn users<'a>(&'a self, found: &'a Found) -> impl Iterator<Item = &'a User> {
        found.runs.iter().flat_map(|run| &self.blocks[run.clone()]).flat_map(|block| &block.users)
    }
}

/// Blocks that hold what was looked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    runs: Vec<Range<usize>>,
    /// How many users they hold.
    pub(crate) users: usize,
    /// How many of these are in blocks that hold nothing else: at least so many are what was looked for.
    pub(crate) inner_users: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{mixed_tests, number_tests};
    use crate::span::Span;
    use enroute_filter::Test;

    /// Users come and go; whoever is left is where the others look for it, and nowhere is anybody else.
    #[test]
    fn users_are_found_among_those_that_cover_and_those_that_are_covered() {
        let tests: Vec<Test> = [number_tests(), mixed_tests()].concat();
        let span = |id: u32| Span::of(&tests[id as usize % tests.len()]);
        let key_of = |id| (span(id).group, span(id).key());
        let rank_of = |id| span(id).outline().rank();
        let mut forest = PredicateForest::<4>::default();
        let ids = 0..3 * tests.len() as u32;
        let order = |id: &u32| (id.wrapping_mul(0x9E37_79B1), *id);
        let mut shuffled: Vec<u32> = ids.clone().collect();
        shuffled.sort_by_key(order);
        for &id in &shuffled {
            forest.insert(User { id, signature: 0 }, key_of(id), rank_of, key_of);
        }
        for (removed, &id) in shuffled.iter().enumerate() {
            if removed % 16 == 0 {
                let left = &shuffled[removed..];
                for mine in ids.clone().step_by(7).map(span) {
                    let covering = |group| mine.keys_of_covering(group);
                    let covered = |group| mine.keys_of_covered(group);
                    assert_finds(&forest, left, &covering, &key_of);
                    assert_finds(&forest, left, &covered, &key_of);
                }
            }
            forest.remove(id, key_of(id));
        }
        assert!(forest.is_empty() && forest.groups.is_empty());
    }

    fn assert_finds(
        forest: &PredicateForest<4>,
        left: &[u32],
        keys: &dyn Fn(Group) -> Option<Keys>,
        key_of: &dyn Fn(u32) -> Key,
    ) {
        let found = forest.find(keys);
        let mut users: Vec<u32> = forest.users(&found).map(|user| user.id).collect();
        users.sort_unstable();
        assert_eq!(users.len(), found.users);
        assert!(users.is_sorted_by(|a, b| a < b), "nobody is found twice");
        let is_wanted = |id: u32| {
            let (group, key) = key_of(id);
            keys(group).is_some_and(|(first, last)| first <= key && key <= last)
        };
        let wanted: Vec<u32> = left.iter().copied().filter(|&id| is_wanted(id)).collect();
        assert!(wanted.iter().all(|id| users.binary_search(id).is_ok()));
        assert!(found.inner_users <= wanted.len());
        assert!(users.iter().all(|id| left.contains(id)));
        // A few more than asked for: at most those that share the first and the last block of a run.
        assert!(users.len() - wanted.len() <= 2 * 4 * found.runs.len());
    }
}
