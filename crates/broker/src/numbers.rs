//! Small numbers for brokers: what is held of each stands in arrays under its number. They are private to one broker and
//! cross no wire.

use crate::BrokerId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// See the module's page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    /// A simulator's brokers, which know the same ones, share this until one of them hears of another.
    given: Arc<Given>,
    /// The numbers of brokers that are forgotten. Until another needs it, each keeps its own.
    vacant: BTreeSet<u32>,
}

#[derive(Clone, Debug, Default)]
struct Given {
    numbers: BTreeMap<BrokerId, u32>,
    /// By number.
    ids: Vec<BrokerId>,
}

impl Numbers {
    /// The number of a broker, if it is known or was lately.
    pub(crate) fn get(&self, broker: BrokerId) -> Option<u32> {
        self.given.numbers.get(&broker).copied()
    }

    /// The broker with a number.
    pub(crate) fn id(&self, number: u32) -> Option<BrokerId> {
        self.given.ids.get(number as usize).copied()
    }

    /// Whether a broker is known.
    pub(crate) fn is_known(&self, broker: BrokerId) -> bool {
        self.get(broker).is_some_and(|number| !self.vacant.contains(&number))
    }

    /// How many brokers are known.
    pub(crate) fn len(&self) -> usize {
        self.given.ids.len() - self.vacant.len()
    }

    /// The number of a broker that is known from now on.
    pub(crate) fn take(&mut self, broker: BrokerId) -> u32 {
        if let Some(number) = self.get(broker) {
            self.vacant.remove(&number);
            return number;
        }
        let Given { numbers, ids } = Arc::make_mut(&mut self.given);
        let number = match self.vacant.pop_first() {
            Some(number) => {
                let forgotten = std::mem::replace(&mut ids[number as usize], broker);
                numbers.remove(&forgotten);
                number
            }
            None => {
                ids.push(broker);
                (ids.len() - 1) as u32
            }
        };
        numbers.insert(broker, number);
        number
    }

    /// A broker is forgotten: its number may go to another one.
    pub(crate) fn give_up(&mut self, broker: BrokerId) {
        self.vacant.extend(self.get(broker));
    }

    /// The numbers in order of the brokers' ids, those of the forgotten among them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (BrokerId, u32)> {
        self.given.numbers.iter().map(|(&broker, &number)| (broker, number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_forgotten_are_used_again_and_nobody_has_anothers() {
        let [a, b, c] = [3, 1, 2].map(BrokerId);
        let mut numbers = Numbers::default();
        assert_eq!([a, b, a].map(|broker| numbers.take(broker)), [0, 1, 0]);
        let shared = numbers.clone();
        numbers.give_up(a);
        assert!(!numbers.is_known(a) && shared.is_known(a));
        // It comes back and still has its number.
        assert_eq!((numbers.take(a), numbers.len()), (0, 2));
        numbers.give_up(a);
        assert_eq!(numbers.take(c), 0);
        assert_eq!((numbers.get(a), numbers.len()), (None, 2));
        assert_eq!((numbers.take(a), numbers.id(0), numbers.id(2)), (2, Some(c), Some(a)));
        assert_eq!(numbers.iter().collect::<Vec<_>>(), [(b, 1), (c, 0), (a, 2)]);
        assert_eq!(shared.iter().collect::<Vec<_>>(), [(b, 1), (a, 0)]);
    }
}
