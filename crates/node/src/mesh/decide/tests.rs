//! Many brokers that follow the rules, in rounds and without time: random networks, random deaths.

use super::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

const BOUNDS: Bounds = Bounds { min: 3, max: 8 };

/// Places on a square, and who is linked to whom.
struct Network {
    random: StdRng,
    /// By broker; none of those that are dead.
    places: BTreeMap<BrokerId, (f64, f64)>,
    /// What each end calls its link.
    links: BTreeMap<(BrokerId, BrokerId), Reason>,
    swaps: BTreeMap<BrokerId, (BrokerId, BrokerId)>,
    /// A pair that cannot reach each other.
    parted: bool,
}

impl Network {
    /// All brokers join by way of one of those before them.
    fn new(seed: u64, brokers: u64) -> Network {
        let random = StdRng::seed_from_u64(seed);
        let (places, links, swaps) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut network = Network { random, places, links, swaps, parted: false };
        for number in 1..=brokers {
            let by_way_of = (number > 1).then(|| BrokerId(network.random.random_range(1..number)));
            network.join(BrokerId(number), by_way_of);
        }
        network
    }

    fn join(&mut self, broker: BrokerId, by_way_of: Option<BrokerId>) {
        let place = (self.random.random_range(0.0..100.0), self.random.random_range(0.0..100.0));
        self.places.insert(broker, place);
        if let Some(other) = by_way_of {
            self.link(broker, other, Reason::Configured);
        }
    }

    fn link(&mut self, from: BrokerId, to: BrokerId, reason: Reason) {
        self.links.insert((from, to), reason);
        self.links.entry((to, from)).or_insert(Reason::Accepted);
    }

    fn unlink(&mut self, a: BrokerId, b: BrokerId) {
        self.links.remove(&(a, b));
        self.links.remove(&(b, a));
    }

    fn kill(&mut self, broker: BrokerId) {
        self.places.remove(&broker);
        self.links.retain(|(a, b), _| *a != broker && *b != broker);
    }

    fn cost(&self, a: BrokerId, b: BrokerId) -> u32 {
        let ((ax, ay), (bx, by)) = (self.places[&a], self.places[&b]);
        1 + ((ax - bx).hypot(ay - by)) as u32
    }

    fn neighbours(&self, broker: BrokerId) -> BTreeSet<BrokerId> {
        self.links.range((broker, BrokerId(0))..=(broker, BrokerId(u64::MAX))).map(|((_, to), _)| *to).collect()
    }

    fn reached_from(&self, broker: BrokerId) -> BTreeSet<BrokerId> {
        let (mut seen, mut to_visit) = (BTreeSet::from([broker]), vec![broker]);
        while let Some(broker) = to_visit.pop() {
            to_visit.extend(self.neighbours(broker).into_iter().filter(|next| seen.insert(*next)));
        }
        seen
    }

    /// Whether a partition lies between two.
    fn apart(&self, a: BrokerId, b: BrokerId) -> bool {
        self.parted && a.0 % 2 != b.0 % 2
    }

    fn view(&self, me: BrokerId, measure: bool) -> View {
        let reached = self.reached_from(me);
        let member = |&other: &BrokerId| {
            let neighbours = self.neighbours(other);
            (other, Member { reachable: reached.contains(&other), dialable: true, neighbours })
        };
        let own = self.neighbours(me).into_iter();
        View {
            me,
            members: self.places.keys().filter(|other| **other != me).map(member).collect(),
            links: own
                .map(|to| (to, OwnLink { cost: Some(self.cost(me, to)), reason: self.links[&(me, to)] }))
                .collect(),
            dials: BTreeMap::new(),
            swap: self.swaps.get(&me).copied(),
            measure,
        }
    }

    /// Each broker decides once; how many have done something.
    fn round(&mut self, measure: bool) -> usize {
        let mut busy = 0;
        for me in self.places.keys().copied().collect::<Vec<_>>() {
            let view = self.view(me, measure);
            let actions = decide(BOUNDS, &view, &mut self.random);
            self.swaps.remove(&me);
            let in_vain = |action: &Action| match action {
                Action::Dial(_, Purpose::Measure) => true,
                Action::Dial(_, Purpose::Heal) => self.parted,
                Action::Dial(_, Purpose::Grow { .. }) | Action::Drop(_) => false,
            };
            busy += usize::from(!actions.iter().all(in_vain));
            for action in actions {
                self.act(me, action, &view);
            }
        }
        busy
    }

    fn act(&mut self, me: BrokerId, action: Action, view: &View) {
        match action {
            Action::Drop(neighbour) => {
                assert_ne!(view.links[&neighbour].reason, Reason::Configured, "a configured one is dropped");
                self.unlink(me, neighbour);
                assert!(self.reached_from(me).contains(&neighbour), "{me} cuts off {neighbour}");
            }
            Action::Dial(to, _) if self.apart(me, to) => {}
            Action::Dial(to, Purpose::Measure) => match judge(BOUNDS, view, to, self.cost(me, to)) {
                Verdict::Leave => {}
                Verdict::KeepAsFar => self.link(me, to, Reason::Chosen { far: true }),
                Verdict::Replace(old) => {
                    assert_eq!(view.links[&old].reason, Reason::Chosen { far: false });
                    self.link(me, to, Reason::Chosen { far: false });
                    self.swaps.insert(me, (to, old));
                }
            },
            // Who is full takes in only who has no other way.
            Action::Dial(to, purpose) => {
                let spare = self.reached_from(me).contains(&to);
                if !spare || self.neighbours(to).len() < BOUNDS.max {
                    let far = purpose == Purpose::Grow { far: true };
                    self.link(me, to, Reason::Chosen { far });
                }
            }
        }
    }

    /// Runs until nobody has anything to do.
    fn settle(&mut self, what: &str) {
        // Looking for who is lost is left to chance: one quiet round may be an accident.
        let mut quiet = 0;
        for _ in 0..2_000 {
            quiet = if self.round(false) == 0 { quiet + 1 } else { 0 };
            if quiet == 20
                && (self.parted || self.reached_from(*self.places.keys().next().unwrap()).len() == self.places.len())
            {
                return;
            }
        }
        panic!("{what}: no end; links: {:?}", self.links.keys().collect::<Vec<_>>());
    }

    fn check(&self, what: &str) {
        let all: BTreeSet<BrokerId> = self.places.keys().copied().collect();
        for &broker in &all {
            let degree = self.neighbours(broker).len();
            let least = BOUNDS.min.min(all.len() - 1);
            assert!((least..=BOUNDS.max).contains(&degree), "{what}: {broker} has {degree} links");
            if !self.parted {
                assert_eq!(self.reached_from(broker), all, "{what}: from {broker}");
            }
        }
    }

    fn mean_cost(&self) -> f64 {
        let costs = self.links.keys().map(|&(a, b)| f64::from(self.cost(a, b)));
        costs.sum::<f64>() / self.links.len() as f64
    }
}

#[test]
fn random_networks_come_together_and_keep_within_bounds() {
    for seed in 0..80 {
        let brokers = 1 + seed % 40;
        let mut network = Network::new(seed, brokers);
        let what = format!("{brokers} brokers, seed {seed}");
        network.settle(&what);
        network.check(&what);
    }
}

#[test]
fn a_hub_that_all_have_joined_by_does_not_stay_one() {
    for seed in 0..30 {
        let mut network = Network::new(seed, 1);
        for number in 2..=30 {
            network.join(BrokerId(number), Some(BrokerId(1)));
        }
        network.settle("a star");
        network.check("a star");
    }
}

#[test]
fn deaths_are_made_good() {
    for seed in 0..30 {
        let mut network = Network::new(seed, 30);
        network.settle("before");
        for victim in 1..=30 {
            if network.random.random_bool(0.4) {
                network.kill(BrokerId(victim));
            }
        }
        if network.places.is_empty() {
            continue;
        }
        network.settle("after the deaths");
        network.check("after the deaths");
        network.join(BrokerId(99), None);
        network.settle("a member that comes back without knowing anybody's address is found");
        network.check("one more");
    }
}

#[test]
fn partitions_heal() {
    for seed in 0..30 {
        let mut network = Network::new(seed, 24);
        network.settle("before");
        network.parted = true;
        let between = |(a, b): &(BrokerId, BrokerId)| a.0 % 2 != b.0 % 2;
        network.links.retain(|ends, _| !between(ends));
        network.settle("each half on its own");
        network.parted = false;
        network.settle("whole again");
        network.check("whole again");
    }
}

#[test]
fn links_become_shorter_and_a_far_one_stays() {
    let (mut before, mut after) = (0.0, 0.0);
    for seed in 0..10 {
        let mut network = Network::new(seed, 30);
        network.settle("before");
        before += network.mean_cost();
        for _ in 0..60 {
            network.round(true);
        }
        network.settle("after");
        network.check("after");
        after += network.mean_cost();
        for broker in network.places.keys() {
            let chosen: Vec<Reason> =
                network.neighbours(*broker).iter().map(|to| network.links[&(*broker, *to)]).collect();
            let near = chosen.contains(&Reason::Chosen { far: false });
            let far = chosen.contains(&Reason::Chosen { far: true });
            assert!(far || !near, "seed {seed}: {broker} has chosen near ones only: {chosen:?}");
        }
    }
    assert!(after < before * 0.9, "{before} {after}");
}

#[test]
fn a_crowd_does_not_run_over_who_comes_back() {
    let mut network = Network::new(7, 100);
    network.settle("before");
    network.join(BrokerId(1_000), None);
    let looking = |network: &mut Network| {
        let mut count = 0;
        for me in network.places.keys().copied().filter(|id| id.0 < 1_000).collect::<Vec<_>>() {
            let view = network.view(me, false);
            let actions = decide(BOUNDS, &view, &mut network.random);
            count += usize::from(actions.contains(&Action::Dial(BrokerId(1_000), Purpose::Heal)));
        }
        count
    };
    let counts: Vec<usize> = (0..50).map(|_| looking(&mut network)).collect();
    assert!(counts.iter().all(|&count| count <= 15), "{counts:?}");
    let mean = counts.iter().sum::<usize>() as f64 / 50.0;
    assert!((1.5..=5.0).contains(&mean), "{mean}");
}

#[test]
fn nobody_is_dialled_who_cannot_be_or_is_being_dialled() {
    let mut view = View {
        me: BrokerId(1),
        members: BTreeMap::new(),
        links: BTreeMap::new(),
        dials: BTreeMap::from([(BrokerId(2), Purpose::Heal)]),
        swap: None,
        measure: true,
    };
    view.members.insert(BrokerId(2), Member { dialable: true, ..Member::default() });
    view.members.insert(BrokerId(3), Member { reachable: true, ..Member::default() });
    let mut random = StdRng::seed_from_u64(1);
    assert!((0..100).all(|_| decide(BOUNDS, &view, &mut random).is_empty()));
    view.dials.clear();
    assert_eq!(decide(BOUNDS, &view, &mut random), [Action::Dial(BrokerId(2), Purpose::Heal)]);
}
