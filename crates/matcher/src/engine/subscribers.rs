//! Who asks for an entry: subscriptions, their owners, and groups of subscriptions that ask for the same.

use super::flat::Flat;
use super::pages::Pages;
use super::rows::{self, Rows};
use super::table::{Table, hash_number};
use crate::{Owner, SubscriptionId};
use std::collections::BTreeMap;
use std::mem::size_of;

/// Marks rows that are a list of several.
const SEVERAL: u32 = 1 << 31;
/// The rows of FALSE.
const NO_ROWS: u32 = u32::MAX;
/// Marks the number of a subscription where others have the number of their only row.
const NUMBER: u32 = 1 << 31;

/// A subscription.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subscription {
    pub(super) id: SubscriptionId,
    pub(super) owner: u32,
    /// Its row; with [`SEVERAL`] the number of a list of rows; or [`NO_ROWS`], which vacant places have too.
    rows: u32,
}

/// How a subscription is found.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    /// By its only row, which no other subscription has.
    Row(u32),
    /// By its number.
    Subscription(u32),
}

/// Subscriptions that ask for the same entry.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    /// Those that have no other entry.
    pub(super) alone: Vec<SubscriptionId>,
    /// The numbers of the others.
    pub(super) others: Vec<u32>,
    /// How many there are of each owner.
    pub(super) owners: BTreeMap<u32, u32>,
}

impl Group {
    /// Adds a subscription, by its id if it has no other entry.
    pub(super) fn add(&mut self, number: u32, only: Option<SubscriptionId>, owner: u32) {
        match only {
            Some(id) => self.alone.push(id),
            None => self.others.push(number),
        }
        *self.owners.entry(owner).or_default() += 1;
    }

    /// Removes a subscription; whether it was the last. Linear in the group, though with a small factor.
    pub(super) fn remove(&mut self, number: u32, only: Option<SubscriptionId>, owner: u32) -> bool {
        let is_in = "every subscription is in its group";
        match only {
            Some(id) => {
                let place = self.alone.iter().position(|&other| other == id).expect(is_in);
                self.alone.swap_remove(place);
            }
            None => {
                let place = self.others.iter().position(|&other| other == number).expect(is_in);
                self.others.swap_remove(place);
            }
        }
        let count = self.owners.get_mut(&owner).expect(is_in);
        *count -= 1;
        if *count == 0 {
            self.owners.remove(&owner);
        }
        self.owners.is_empty()
    }

    fn memory_usage(&self) -> usize {
        self.alone.capacity() * size_of::<SubscriptionId>()
            + self.others.capacity() * size_of::<u32>()
            + self.owners.len() * 16
    }
}

#[derive(Clone, Copy, Debug)]
struct OwnerUse {
    owner: Owner,
    subscriptions: u32,
}

/// All subscriptions, owners and groups.
#[derive(Clone, Debug, Default)]
pub(super) struct Subscribers {
    subscriptions: Pages<Subscription>,
    /// A piece of the id's hash, and the row of a subscription that has it to itself and no other, since that row names the
    /// subscription; else the subscription's [`NUMBER`].
    by_id: Flat<(u32, u32)>,
    lists: Pages<Box<[u32]>>,
    owners: Pages<OwnerUse>,
    by_owner: Table<u32>,
    pub(super) groups: Pages<Group>,
    count: usize,
    owner_count: usize,
    secret: u64,
}

fn spread(piece: u32) -> u64 {
    hash_number(piece.into(), 0)
}

impl Subscribers {
    pub(super) fn new(secret: u64) -> Subscribers {
        Subscribers { secret, ..Subscribers::default() }
    }

    fn piece(&self, id: SubscriptionId) -> u32 {
        hash_number(id.0, self.secret) as u32
    }

    pub(super) fn find(&self, id: SubscriptionId, rows: &Rows) -> Option<Found> {
        let piece = self.piece(id);
        let same = |&(other, target): &(u32, u32)| {
            other == piece
                && id
                    == match target & NUMBER {
                        0 => {
                            rows.prefetch(target);
                            rows::id(rows.row(target))
                        }
                        _ => self.subscriptions[target & !NUMBER].id,
                    }
        };
        let &(_, target) = self.by_id.find(spread(piece), same)?;
        Some(if target & NUMBER == 0 { Found::Row(target) } else { Found::Subscription(target & !NUMBER) })
    }

    /// Adds a subscription that is not there, without rows; says its number and its owner's. It is found once it has rows.
    pub(super) fn insert(&mut self, id: SubscriptionId, owner: Owner) -> (u32, u32) {
        let hash = hash_number(owner.0, self.secret);
        let known = self.by_owner.find(hash, |&number| self.owners[number].owner == owner).copied();
        let owner = known.unwrap_or_else(|| {
            let number = self.owners.insert(OwnerUse { owner, subscriptions: 0 });
            let (owners, secret) = (&self.owners, self.secret);
            self.by_owner.insert(hash, number, |&number| hash_number(owners[number].owner.0, secret));
            self.owner_count += 1;
            number
        });
        self.owners[owner].subscriptions += 1;
        let number = self.subscriptions.insert(Subscription { id, owner, rows: NO_ROWS });
        self.count += 1;
        (number, owner)
    }

    /// Notes the rows of a subscription that had none. If it is the only one's, the row names it.
    pub(super) fn set_rows(&mut self, number: u32, rows: &[u32], is_only_ones: bool) {
        let (rows, target) = match rows {
            [] => (NO_ROWS, number | NUMBER),
            [row] => (*row, if is_only_ones { *row } else { number | NUMBER }),
            several => (self.lists.insert(several.into()) | SEVERAL, number | NUMBER),
        };
        self.subscriptions[number].rows = rows;
        let piece = self.piece(self.subscriptions[number].id);
        self.by_id.insert(spread(piece), (piece, target), |&(piece, _)| spread(piece));
    }

    /// Notes that a row of this subscription is no longer its own.
    pub(super) fn share_row(&mut self, number: u32) {
        let Subscription { id, rows, .. } = self.subscriptions[number];
        if rows & SEVERAL == 0
            && let Some(item) = self.by_id.find_mut(spread(self.piece(id)), |&(_, target)| target == rows)
        {
            item.1 = number | NUMBER;
        }
    }

    /// The rows of a subscription.
    pub(super) fn rows(&self, number: u32) -> &[u32] {
        let rows = &self.subscriptions[number].rows;
        match *rows {
            NO_ROWS => &[],
            list if list & SEVERAL != 0 => &self.lists[list & !SEVERAL],
            _ => std::slice::from_ref(rows),
        }
    }

    /// Removes a subscription whose rows no longer name it.
    pub(super) fn remove(&mut self, number: u32) {
        let Subscription { id, owner, rows } = self.subscriptions[number];
        let piece = self.piece(id);
        let is_several = rows & SEVERAL != 0;
        let same = |&(_, target): &(u32, u32)| target == number | NUMBER || !is_several && target == rows;
        self.by_id.remove(spread(piece), same, |&(piece, _)| spread(piece));
        if rows != NO_ROWS && rows & SEVERAL != 0 {
            self.lists[rows & !SEVERAL] = Box::default();
            self.lists.vacate(rows & !SEVERAL);
        }
        self.subscriptions[number].rows = NO_ROWS;
        self.subscriptions.vacate(number);
        self.count -= 1;
        self.owners[owner].subscriptions -= 1;
        if self.owners[owner].subscriptions == 0 {
            let hash = hash_number(self.owners[owner].owner.0, self.secret);
            self.by_owner.remove(hash, |&other| other == owner);
            self.owners.vacate(owner);
            self.owner_count -= 1;
        }
    }

    /// Asks the processor for a subscription.
    pub(super) fn prefetch_subscription(&self, number: u32) {
        super::simd::prefetch(&self.subscriptions[number]);
    }

    /// Asks the processor for what some groups later will be needed.
    #[inline]
    pub(super) fn prefetch(&self, groups: &[u32]) {
        if let Some(&group) = groups.get(16) {
            super::simd::prefetch(&self.groups[group]);
        }
        if let Some(id) = groups.get(8).and_then(|&group| self.groups[group].alone.first()) {
            super::simd::prefetch(id);
        }
    }

    pub(super) fn id(&self, number: u32) -> SubscriptionId {
        self.subscriptions[number].id
    }

    pub(super) fn owner_of(&self, number: u32) -> u32 {
        self.subscriptions[number].owner
    }

    pub(super) fn owner(&self, number: u32) -> Owner {
        self.owners[number].owner
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn owner_count(&self) -> usize {
        self.owner_count
    }

    /// Every subscription's number is smaller.
    pub(super) fn bound(&self) -> usize {
        self.subscriptions.bound()
    }

    /// Every owner's number is smaller.
    pub(super) fn owner_bound(&self) -> usize {
        self.owners.bound()
    }

    pub(super) fn memory_usage(&self) -> usize {
        self.subscriptions.memory_usage()
            + self.by_id.memory_usage()
            + self.lists.memory_usage()
            + self.lists.iter().map(|rows| size_of_val(&**rows)).sum::<usize>()
            + self.owners.memory_usage()
            + self.by_owner.memory_usage()
            + self.groups.memory_usage()
            + self.groups.iter().map(Group::memory_usage).sum::<usize>()
    }
}
