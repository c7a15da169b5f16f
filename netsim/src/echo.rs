//! Echoes: in the moment in which a subscription is answered, some client publishes what it wants. From then on nothing of that
//! may be missed, and whoever promised too early is found out only so soon after.

use crate::traffic::Traffic;
use crate::world::World;
use crate::{Random, seeded};
use enroute_filter::Filter;
use rand::RngExt;

/// Events drawn for a filter before it is taken to match none.
const DRAWS: usize = 100;

/// What is published when subscriptions are answered.
#[derive(Debug)]
pub(crate) struct Echoes {
    random: Random,
    traffic: Traffic,
    /// Filters of subscriptions that have just been answered.
    answered: Vec<Filter>,
}

impl World {
    /// From now on some client publishes, whenever a subscription has been answered, an event that it wants.
    pub fn publish_on_answers(&mut self) {
        let seed = self.settings.seed;
        let traffic = Traffic::over(self.settings.domain, seeded(seed, "events of echoes"));
        let random = seeded(seed, "echoes");
        self.echoes = Some(Echoes { random, traffic, answered: Vec::new() });
    }

    /// A subscription is in force.
    pub(crate) fn note_answer(&mut self, number: u64) {
        if let Some(echoes) = &mut self.echoes {
            echoes.answered.extend(self.oracle.book.filter(number).cloned());
        }
    }

    /// A broker has said all it had to say for now: those that were answered are tried.
    pub(crate) fn publish_echoes(&mut self) {
        while let Some(echoes) = &mut self.echoes
            && let Some(filter) = echoes.answered.pop()
        {
            let client = echoes.random.random_range(0..self.clients.len());
            let event = (0..DRAWS).map(|_| echoes.traffic.event()).find(|event| filter.matches(event));
            if let Some(event) = event {
                self.publish(client, &event);
            }
        }
    }
}
