//! A million inserts, removes and questions against a model that tests each filter by itself.
//!
//! Two engines take the same stream, the second under other names of attributes, other ids and other owners. A quarter of the
//! predicates is taken from earlier ones, so that entries are shared; values drift, so that generations of lenses follow
//! each other, and entries come and go while one takes over from the one before.

use crate::chance::{Random, seed};
use enroute_filter::{Comparison, Conjunction, Constraint, Event, Filter, Limits, Test, Timestamp, Value};
use enroute_matcher::{Enindex, Owner, Scratch, SubscriptionId};
use std::collections::{BTreeMap, BTreeSet};

const STREAMS: u64 = 40;
const OPERATIONS: usize = 25_000;
const COMPARISONS: [Comparison; 6] =
    [Comparison::Eq, Comparison::Ne, Comparison::Lt, Comparison::Le, Comparison::Gt, Comparison::Ge];
/// Predicates are shared with so many earlier ones of their attribute.
const POOL: usize = 64;

/// Draws filters and events about attributes that are numbers yet.
struct Inputs {
    random: Random,
    attributes: usize,
    /// How many values an attribute has at a time; few, and all meet, many, and cells matter.
    spread: u64,
    /// Where the values are now.
    base: u64,
    /// The attribute that few events have now.
    rare: usize,
    /// By attribute: predicates to be shared.
    pools: Vec<Vec<Test>>,
}

/// Conjunctions of constraints, by attribute.
type Disjunction = Vec<Vec<(usize, Test)>>;

impl Inputs {
    fn new(seed: u64) -> Inputs {
        let mut random = Random(seed);
        let attributes = 2 + random.below(5) as usize;
        let spread = *random.pick(&[3, 5, 30, 400]);
        Inputs { random, attributes, spread, base: 0, rare: 0, pools: vec![Vec::new(); attributes] }
    }

    /// Moves the values and the frequencies on.
    fn drift(&mut self) {
        self.base += self.random.below(self.spread + 1);
        self.rare = self.random.below(self.attributes as u64) as usize;
    }

    /// A value of the class that the attribute mostly has, and now and then of another.
    fn value(&mut self, attribute: usize) -> Value {
        let number = self.base + self.random.below(self.spread);
        let kind = if self.random.below(25) == 0 { self.random.below(6) as usize } else { attribute % 6 };
        match kind {
            0 => Value::Int(number as i64),
            1 => Value::from(format!("{}{}", ["", "SYM-"][number as usize % 2], number / 2).as_str()),
            2 => Value::Float(number as f64 / 4.0),
            // Neighbours that are one f64.
            3 => Value::Int((1 << 53) + number as i64),
            4 => Value::Time(Timestamp(number as i64 * 1_000_000_007)),
            _ => Value::Bool(number.is_multiple_of(2)),
        }
    }

    fn new_test(&mut self, attribute: usize) -> Test {
        match self.random.below(18) {
            0 => Test::Absent,
            1 => Test::Present,
            2 | 3 => Test::between(&self.value(attribute), &self.value(attribute)),
            4 => Test::not_between(&self.value(attribute), &self.value(attribute)),
            kind @ (5 | 6) => {
                let count = 2 + self.random.below(3);
                let values: Vec<Value> = (0..count).map(|_| self.value(attribute)).collect();
                let values = values.iter().map(Value::as_ref);
                if kind == 5 { Test::one_of(values) } else { Test::none_of(values) }
            }
            7 => {
                let text = format!("{}", self.base / 2 + self.random.below(self.spread));
                match self.random.below(4) {
                    0 => Test::prefix(&text[..1]),
                    1 => Test::suffix(&text),
                    2 => Test::contains(&text),
                    _ => Test::like(&format!("S_M-%{text}"), None).expect("a pattern"),
                }
            }
            _ => {
                let comparison = *self.random.pick(&COMPARISONS);
                Test::compare(comparison, &self.value(attribute))
            }
        }
    }

    fn test(&mut self, attribute: usize) -> Test {
        let earlier = self.pools[attribute].len();
        if earlier > 0 && self.random.below(4) == 0 {
            return self.random.pick(&self.pools[attribute]).clone();
        }
        let test = self.new_test(attribute);
        if earlier < POOL {
            self.pools[attribute].push(test.clone());
        } else {
            self.pools[attribute][self.random.below(POOL as u64) as usize] = test.clone();
        }
        test
    }

    /// Mostly one conjunction, and often of one predicate.
    fn filter(&mut self) -> Disjunction {
        let conjunctions = if self.random.below(6) == 0 { self.random.below(4) } else { 1 };
        let one_of = 1 + self.random.below(3);
        let mut conjunction = || {
            let certain = self.random.below(self.attributes as u64) as usize;
            let attributes: Vec<usize> = (0..self.attributes)
                .filter(|&attribute| attribute == certain || one_of > 1 && self.random.below(one_of) == 0)
                .collect();
            attributes.into_iter().map(|attribute| (attribute, self.test(attribute))).collect()
        };
        (0..conjunctions).map(|_| conjunction()).collect()
    }

    fn event(&mut self) -> Vec<(usize, Value)> {
        let mut event = Vec::new();
        for attribute in 0..self.attributes {
            let one_of = if attribute == self.rare { 12 } else { 5 };
            let is_there = (self.random.below(one_of) == 0) == (attribute == self.rare);
            if is_there {
                let is_nan = self.random.below(60) == 0;
                event.push((attribute, if is_nan { Value::Float(f64::NAN) } else { self.value(attribute) }));
            }
        }
        event
    }
}

/// What attributes, subscriptions and owners are called.
struct Naming {
    names: [&'static str; 6],
    /// Odd, so that no two numbers become one.
    factor: u64,
}

const NAMINGS: [Naming; 2] = [
    Naming { names: ["a", "b", "c", "d", "e", "f"], factor: 1 },
    Naming { names: ["d", "f", "a", "e", "c", "b"], factor: 0xD134_2543_DE82_EF95 },
];

impl Naming {
    fn filter(&self, disjunction: &Disjunction) -> Filter {
        let constraint = |(attribute, test): &(usize, Test)| Constraint::new(self.names[*attribute], test.clone());
        let conjunctions =
            disjunction.iter().filter_map(|conjunction| Conjunction::new(conjunction.iter().map(constraint)));
        Filter::any_of(conjunctions, &Limits::default()).expect("few and short")
    }

    fn event(&self, event: &[(usize, Value)]) -> Event {
        let add = |builder: enroute_filter::EventBuilder, (attribute, value): &(usize, Value)| {
            builder.attribute(self.names[*attribute], value.clone())
        };
        event.iter().fold(Event::builder(), add).build().expect("few and short")
    }

    fn id(&self, number: u64) -> SubscriptionId {
        SubscriptionId(number.wrapping_mul(self.factor))
    }

    fn owner(&self, number: u64) -> Owner {
        Owner(number.wrapping_mul(self.factor))
    }
}

/// An engine, as many as there are namings, and what they should hold.
#[derive(Default)]
struct Compared {
    engines: [Enindex; NAMINGS.len()],
    scratches: [Scratch; NAMINGS.len()],
    /// By number: the owner's number and the filter.
    model: BTreeMap<u64, (u64, Filter)>,
    /// The numbers in the model, in any order.
    live: Vec<u64>,
    matches: usize,
    tested: usize,
}

impl Compared {
    fn insert(&mut self, number: u64, owner: u64, filter: &Disjunction) {
        let is_new = !self.model.contains_key(&number);
        for (engine, naming) in self.engines.iter_mut().zip(&NAMINGS) {
            let filter = naming.filter(filter);
            assert_eq!(engine.insert(naming.id(number), naming.owner(owner), &filter), is_new);
        }
        if is_new {
            self.model.insert(number, (owner, NAMINGS[0].filter(filter)));
            self.live.push(number);
        }
    }

    fn remove(&mut self, place: usize) {
        let number = self.live.swap_remove(place);
        self.model.remove(&number);
        for (engine, naming) in self.engines.iter_mut().zip(&NAMINGS) {
            assert!(engine.remove(naming.id(number)) && !engine.contains(naming.id(number)));
            assert!(!engine.remove(naming.id(number)));
        }
    }

    /// Asks for the subscriptions that an event matches, or for who is interested.
    fn ask(&mut self, attributes: &[(usize, Value)], is_for_owners: bool) {
        let event = NAMINGS[0].event(attributes);
        let matching = self.model.iter().filter(|(_, (_, filter))| filter.matches(&event));
        let matching: Vec<(u64, u64)> = matching.map(|(number, (owner, _))| (*number, *owner)).collect();
        self.matches += matching.len();
        self.tested += self.model.len();
        for ((engine, scratch), naming) in self.engines.iter().zip(&mut self.scratches).zip(&NAMINGS) {
            let event = naming.event(attributes);
            if is_for_owners {
                let expected: BTreeSet<Owner> = matching.iter().map(|(_, owner)| naming.owner(*owner)).collect();
                let mut found = vec![Owner(7)];
                engine.interested(&event, scratch, &mut found);
                assert!(expected.iter().eq(&found), "{event:?}: {found:?}, not {expected:?}");
            } else {
                let expected: BTreeSet<SubscriptionId> =
                    matching.iter().map(|(number, _)| naming.id(*number)).collect();
                let mut found = vec![SubscriptionId(7)];
                engine.matches(&event, scratch, &mut found);
                found.sort_unstable();
                assert!(expected.iter().eq(&found), "{event:?}: {found:?}, not {expected:?}");
            }
        }
    }
}

/// Says where it was if it is dropped by a panic.
struct Progress {
    seed: u64,
    operation: usize,
}

impl Drop for Progress {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("stream of seed {}, operation {}", self.seed, self.operation);
        }
    }
}

/// Lets the number of subscriptions rise and fall, again and again, with questions in between; says what part matched.
fn stream(seed: u64) -> f64 {
    let mut progress = Progress { seed, operation: 0 };
    let mut inputs = Inputs::new(seed);
    let mut compared = Compared::default();
    let most = *inputs.random.pick(&[12, 60, 200, 500]);
    let mut is_rising = true;
    for operation in 0..OPERATIONS {
        progress.operation = operation;
        if operation % 700 == 699 {
            inputs.drift();
        }
        let live = compared.live.len();
        is_rising = if is_rising { live < most } else { live <= 2 };
        let is_against = inputs.random.below(4) == 0;
        match inputs.random.below(5) {
            kind @ (0 | 1) => compared.ask(&inputs.event(), kind == 0),
            _ if live == 0 || is_rising != is_against => {
                // Ids come again, and now and then one that is there.
                let (number, owner) = (inputs.random.below(4 * most as u64), inputs.random.below(12));
                compared.insert(number, owner, &inputs.filter());
            }
            _ => compared.remove(inputs.random.below(live as u64) as usize),
        }
        assert!(compared.engines.iter().all(|engine| engine.len() == compared.live.len()));
    }
    while !compared.live.is_empty() {
        compared.remove(compared.live.len() / 2);
    }
    for engine in &compared.engines {
        assert_eq!(engine.memory_usage(), Enindex::new().memory_usage());
    }
    compared.matches as f64 / compared.tested as f64
}

#[test]
fn a_million_operations() {
    let first = seed(1);
    let shares: Vec<f64> = (first..first + STREAMS).map(stream).collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!((0.1..0.6).contains(&mean), "some are to match, and some not: {mean}");
}
