//! Rhythms: things that say little by themselves and much when they happen close together.

use super::schedule::{Draft, NAMES};
use crate::step::Step;
use rand::RngExt;

impl Draft {
    /// One of the rhythms; where there are to be no faults, one without.
    pub(super) fn rhythm(&mut self) {
        let kinds = if self.storminess > 0 { 9 } else { 3 };
        match self.random.random_range(0..kinds) {
            0 => self.burst(),
            1 => self.dials_from_both_ends(),
            2 => self.scope_in_haste(),
            3 => self.scope_that_blinks(),
            4 => self.edge_of_grace(),
            5 => self.words_of_a_former_life(),
            6 => self.failover(),
            7 => self.start_with_a_cut(),
            _ => self.gone(),
        }
    }

    fn clients_of(&self, broker: &str) -> Vec<String> {
        let own = |client: &&String| client.rsplit_once('-').is_some_and(|(home, _)| home == broker);
        self.clients.iter().filter(own).cloned().collect()
    }

    /// A broker that has clients, of the core if only those will do.
    fn populated(&mut self, core_only: bool) -> Option<String> {
        let brokers = if core_only { &self.brokers[..self.core] } else { &self.brokers[..] };
        let populated = brokers.iter().filter(|broker| !self.clients_of(broker).is_empty());
        let populated: Vec<String> = populated.cloned().collect();
        self.one(&populated)
    }

    fn core_broker(&mut self) -> Option<String> {
        let core = self.brokers[..self.core].to_vec();
        self.one(&core)
    }

    /// The links between core brokers.
    fn core_links(&self) -> Vec<[String; 2]> {
        let core = &self.brokers[..self.core];
        self.links.iter().filter(|link| link.iter().all(|end| core.contains(end))).cloned().collect()
    }

    /// Clients change what they want so many times, at most so many milliseconds apart.
    fn churn(&mut self, clients: &[String], times: usize, most_ms: u64) {
        for _ in 0..times {
            let Some(client) = self.one(clients) else { return };
            let name = NAMES[self.random.random_range(0..NAMES.len())].to_owned();
            if self.random.random_bool(0.7) {
                let filter = Some(self.traffic.filter().to_string());
                self.steps.push(Step::Subscribe { client, name, filter, wait: false });
            } else {
                self.steps.push(Step::Unsubscribe { client, name });
            }
            let ms = self.random.random_range(0..=most_ms);
            self.wait(ms);
        }
    }

    fn publish_some(&mut self, times: usize, most_ms: u64) {
        for _ in 0..times {
            let Some(client) = self.one(&self.publishers.clone()) else { return };
            self.publish(client);
            let ms = self.random.random_range(0..=most_ms);
            self.wait(ms);
        }
    }

    /// More changes at one broker than may be under way to another, so that some gather.
    fn burst(&mut self) {
        let Some(broker) = self.populated(false) else { return };
        let clients = self.clients_of(&broker);
        let times = self.random.random_range(10..25);
        self.churn(&clients, times, 1);
    }

    /// Both ends of a link dial once more at the same time, while events go over it.
    fn dials_from_both_ends(&mut self) {
        let Some(link) = self.one(&self.core_links()) else { return };
        self.publish_some(2, 1);
        let [from, to] = link.clone();
        self.steps.push(Step::DialAgain { link });
        self.steps.push(Step::DialAgain { link: [to, from] });
        self.publish_some(6, 10);
    }

    /// The clients of a broker come back when its scope has been given up; they advertise and publish one right after the other, so
    /// that what others have been told of the scope is behind.
    fn scope_in_haste(&mut self) {
        let Some(broker) = self.populated(false) else { return };
        let own = self.clients_of(&broker);
        self.steps.extend(own.iter().map(|client| Step::Disconnect { client: client.clone() }));
        self.wait(self.narrowing_ms + 100);
        self.steps.extend(own.iter().map(|client| Step::Connect { client: client.clone() }));
        for _ in 0..self.random.random_range(6..12) {
            let Some(client) = self.one(&own) else { return };
            if self.random.random_bool(0.5) {
                let name = NAMES[self.random.random_range(0..NAMES.len())].to_owned();
                let filter = Some(self.traffic.filter().to_string());
                self.steps.push(Step::Advertise { client: client.clone(), name, filter });
            }
            self.publish(client);
            let ms = self.random.random_range(0..=12);
            self.wait(ms);
        }
    }

    /// All clients of a broker go; when its scope is given up for that, they come back, and others change what they want
    /// before and after.
    fn scope_that_blinks(&mut self) {
        let Some(broker) = self.populated(false) else { return };
        let own = self.clients_of(&broker);
        self.steps.extend(own.iter().map(|client| Step::Disconnect { client: client.clone() }));
        let others: Vec<String> = self.clients.iter().filter(|client| !own.contains(client)).cloned().collect();
        let (rounds, back) = (20, self.random.random_range(5..15));
        self.wait(self.narrowing_ms - 30);
        for round in 0..rounds {
            if round == back {
                self.steps.extend(own.iter().map(|client| Step::Connect { client: client.clone() }));
                own.iter().for_each(|client| self.publish(client.clone()));
            }
            self.churn(&others, 2, 3);
        }
    }

    /// Parts are cut off from each other, and meet again when some are forgetting the others.
    fn edge_of_grace(&mut self) {
        self.partition();
        let clients = self.clients.clone();
        self.churn(&clients, 5, 100);
        self.wait(self.grace_ms - 400);
        let ms = self.random.random_range(0..=self.detection_ms + 300);
        self.wait(ms);
        self.steps.push(Step::HealAll);
        for _ in 0..3 {
            if let Some(link) = self.one(&self.core_links()) {
                self.steps.push(Step::Slow { link, control_us: 150_000, events_us: 0, bandwidth: None });
            }
        }
        self.publish_some(5, 100);
    }

    /// A broker changes much and crashes, and is back before what it said has arrived everywhere.
    fn words_of_a_former_life(&mut self) {
        let Some(broker) = self.populated(true) else { return };
        let links = self.core_links();
        let far: Vec<[String; 2]> = links.into_iter().filter(|link| !link.contains(&broker)).collect();
        let slow: Vec<[String; 2]> = far.into_iter().filter(|_| self.random.random_bool(0.4)).collect();
        let control_us = [50_000, 150_000, 400_000][self.random.random_range(0..3)];
        for link in &slow {
            self.steps.push(Step::Slow { link: link.clone(), control_us, events_us: 0, bandwidth: None });
        }
        let clients = self.clients_of(&broker);
        for _ in 0..self.random.random_range(1..4) {
            self.churn(&clients, 8, 2);
            let [down_ms, up_ms] = [[0, 1, 20], [50, 200, 600]].map(|spans| spans[self.random.random_range(0..3)]);
            self.steps.push(Step::Crash { broker: broker.clone() });
            self.wait(down_ms);
            self.steps.push(Step::Restart { broker: broker.clone() });
            self.wait(up_ms);
        }
        self.churn(&clients, 4, 100);
        self.publish_some(4, 100);
        self.steps.extend(slow.into_iter().map(|link| Step::Heal { link }));
    }

    /// A leaf changes its uplink while events for it are slow to come to the next one.
    fn failover(&mut self) {
        let leaves = self.brokers[self.core..].to_vec();
        let Some(leaf) = self.one(&leaves) else { return self.words_of_a_former_life() };
        let mut uplinks: Vec<[String; 2]> = self.links.iter().filter(|link| link[0] == leaf).cloned().collect();
        if uplinks.len() < 2 {
            return self.edge_of_grace();
        }
        let last = uplinks.len() - 1;
        uplinks.swap(0, self.random.random_range(0..=last));
        self.steps.extend(uplinks[1..].iter().map(|link| Step::Cut { link: link.clone() }));
        self.steps.push(Step::Heal { link: uplinks[0].clone() });
        self.wait(2_000);
        let next = self.random.random_range(1..=last);
        let towards: Vec<[String; 2]> =
            self.core_links().into_iter().filter(|link| link.contains(&uplinks[next][1])).collect();
        let events_us = [50_000, 200_000, 600_000][self.random.random_range(0..3)];
        for link in &towards {
            self.steps.push(Step::Slow { link: link.clone(), control_us: 0, events_us, bandwidth: None });
        }
        self.publish_some(8, 5);
        let ms = self.random.random_range(0..40);
        self.wait(ms);
        self.steps.push(Step::Heal { link: uplinks[next].clone() });
        self.steps.push(Step::Cut { link: uplinks[0].clone() });
        self.wait(700);
        self.publish_some(3, 50);
        self.steps.extend(uplinks.into_iter().chain(towards).map(|link| Step::Heal { link }));
    }

    /// A broker starts and its clients publish while a link is cut, or lets nothing through, on which others tell it what they
    /// want.
    fn start_with_a_cut(&mut self) {
        let Some(broker) = self.populated(true) else { return };
        let clients = self.clients_of(&broker);
        self.steps.push(Step::Crash { broker: broker.clone() });
        let spans = [0, 1, 2].map(|_| [0, 5, 30, 120, 400][self.random.random_range(0..5)]);
        self.wait(spans[0]);
        self.steps.push(Step::Restart { broker });
        self.wait(spans[1]);
        let Some(link) = self.one(&self.core_links()) else { return };
        match self.random.random_bool(0.5) {
            true => self.steps.push(Step::Cut { link: link.clone() }),
            false => self.steps.push(Step::Stall { link: link.clone(), ms: 500 }),
        }
        for client in clients {
            self.publish(client);
            self.wait(spans[2]);
        }
        self.publish_some(3, 20);
        self.steps.push(Step::Heal { link });
    }

    /// A broker is down for so long that all forget it, some sooner than others, while brokers start and links come and go.
    fn gone(&mut self) {
        let (Some(gone), Some(other)) = (self.core_broker(), self.core_broker()) else { return };
        self.steps.push(Step::Crash { broker: gone.clone() });
        self.wait(self.grace_ms - 300);
        if other != gone {
            self.steps.push(Step::Crash { broker: other.clone() });
            self.wait(5);
            self.steps.push(Step::Restart { broker: other });
        }
        for _ in 0..4 {
            if let Some(link) = self.one(&self.core_links()) {
                self.steps.push(Step::Flap { link, times: 4, down_ms: 60, up_ms: 400 });
            }
        }
        self.publish_some(3, 100);
        // What leaves hold back while they have no uplink would outlast the settling.
        if self.core == self.brokers.len() {
            self.wait(self.grace_ms + self.detection_ms + 10_000);
            self.settle();
        }
        self.steps.push(Step::Restart { broker: gone });
    }
}
