//! Stock quotes: 5,000 symbols traded by Zipf's law, each with a base price of e^(4 + N) dollars, N standard normal.
//!
//! - Four fifths of the subscriptions follow a symbol: a price around its own (base x e^(0.15 N)) as lower bound, as upper
//!   bound, or as a band of up to 5 % to both sides, a third each. Half of them also want a volume of at least
//!   e^(9 + 1.5 N), half one of some exchanges (the bits common to two random 16-bit masks, and one more).
//! - A fifth follows a sector: changes beyond 200 + 200 |N| basis points up, or as often down, and a volume as above. Half
//!   also want one of some exchanges.
//! - A quarter of all is for a window of 6,400 seconds in the day.
//!
//! Prices are in cents, as floats; symbols, sectors and currencies are strings, exchanges numbers. What no rule above
//! mentions is uniform.

use super::{Generator, Kind, conjunction};
use crate::random::{Random, Zipf};
use enroute_filter::{Comparison, Constraint, Event, Filter, Test, ValueRef};

const SYMBOLS: usize = 5_000;
const EXCHANGES: usize = 16;
const LOT: usize = 100_000;
const DAY_SECONDS: usize = 86_400;
const WINDOW_SECONDS: usize = 6_400;
const SECTORS: [&str; 11] = [
    "communication",
    "consumer",
    "energy",
    "financial",
    "health",
    "industrial",
    "materials",
    "realestate",
    "staples",
    "technology",
    "utilities",
];
const CURRENCIES: [&str; 8] = ["AUD", "CAD", "CHF", "CNY", "EUR", "GBP", "JPY", "USD"];

/// See the module.
pub struct Stocks {
    symbols: Vec<Symbol>,
    trade: Zipf,
}

struct Symbol {
    name: String,
    /// In dollars.
    base_price: f64,
}

impl Stocks {
    /// Draws the base prices.
    pub fn new(random: &mut Random) -> Stocks {
        let symbols =
            (0..SYMBOLS).map(|rank| Symbol { name: symbol_name(rank), base_price: libm::exp(4.0 + random.normal()) });
        Stocks { symbols: symbols.collect(), trade: Zipf::new(SYMBOLS) }
    }

    fn symbol(&self, random: &mut Random) -> &Symbol {
        &self.symbols[self.trade.draw(random)]
    }
}

/// Four letters, neighbours far apart: the rank, scattered over 26^4 by a factor that has no divisor in common with it.
fn symbol_name(rank: usize) -> String {
    let number = (rank + 1) * 123_457 % 26_usize.pow(4);
    (0..4).rev().map(|place| char::from(b'A' + (number / 26_usize.pow(place) % 26) as u8)).collect()
}

/// In dollars, by cents.
fn price(symbol: &Symbol, random: &mut Random) -> f64 {
    cents(symbol.base_price * libm::exp(0.15 * random.normal()))
}

fn cents(dollars: f64) -> f64 {
    (dollars * 100.0).round() / 100.0
}

fn volume(random: &mut Random) -> i64 {
    libm::exp(9.0 + 1.5 * random.normal()).round() as i64
}

fn price_test(symbol: &Symbol, random: &mut Random) -> Test {
    let price = price(symbol, random);
    match random.below(3) {
        0 => Test::compare(Comparison::Ge, price),
        1 => Test::compare(Comparison::Le, price),
        _ => {
            let margin = price * 0.05 * random.unit();
            Test::between(cents(price - margin), cents(price + margin))
        }
    }
}

fn volume_at_least(random: &mut Random) -> Constraint {
    Constraint::compare("volume", Comparison::Ge, volume(random))
}

fn some_exchanges(random: &mut Random) -> Constraint {
    let mask = random.next_u64() & random.next_u64() | 1 << random.below(EXCHANGES);
    let exchanges = (0..EXCHANGES as i64).filter(|exchange| mask >> exchange & 1 == 1).map(ValueRef::Int);
    Constraint::new("exchange", Test::one_of(exchanges))
}

fn change_beyond(random: &mut Random) -> Constraint {
    let points = (200.0 + 200.0 * random.normal().abs()).round() as i64;
    if random.chance(0.5) {
        Constraint::compare("change", Comparison::Ge, points)
    } else {
        Constraint::compare("change", Comparison::Le, -points)
    }
}

impl Generator for Stocks {
    fn attributes(&self) -> Vec<(String, Kind)> {
        let attributes = [
            ("symbol", Kind::String),
            ("price", Kind::Float),
            ("volume", Kind::Int),
            ("exchange", Kind::Int),
            ("change", Kind::Int),
            ("sector", Kind::String),
            ("bid_size", Kind::Int),
            ("ask_size", Kind::Int),
            ("second", Kind::Int),
            ("currency", Kind::String),
        ];
        attributes.map(|(name, kind)| (name.to_owned(), kind)).to_vec()
    }

    fn filter(&self, random: &mut Random) -> Filter {
        let mut constraints = Vec::new();
        if random.chance(0.8) {
            let symbol = self.symbol(random);
            constraints.push(Constraint::compare("symbol", Comparison::Eq, symbol.name.as_str()));
            constraints.push(Constraint::new("price", price_test(symbol, random)));
            if random.chance(0.5) {
                constraints.push(volume_at_least(random));
            }
        } else {
            constraints.push(Constraint::compare("sector", Comparison::Eq, *random.pick(&SECTORS)));
            constraints.push(change_beyond(random));
            constraints.push(volume_at_least(random));
        }
        if random.chance(0.5) {
            constraints.push(some_exchanges(random));
        }
        if random.chance(0.25) {
            let first = random.between(0, DAY_SECONDS - WINDOW_SECONDS);
            let window = Test::between(first as i64, (first + WINDOW_SECONDS - 1) as i64);
            constraints.push(Constraint::new("second", window));
        }
        conjunction(constraints)
    }

    fn event(&self, _number: usize, random: &mut Random) -> Event {
        let symbol = self.symbol(random);
        let event = Event::builder()
            .attribute("symbol", symbol.name.as_str())
            .attribute("price", price(symbol, random))
            .attribute("volume", volume(random))
            .attribute("exchange", random.below(EXCHANGES) as i64)
            .attribute("change", (200.0 * random.normal()).round() as i64)
            .attribute("sector", *random.pick(&SECTORS))
            .attribute("bid_size", random.below(LOT) as i64)
            .attribute("ask_size", random.below(LOT) as i64)
            .attribute("second", random.below(DAY_SECONDS) as i64)
            .attribute("currency", *random.pick(&CURRENCIES));
        event.build().expect("ten different attributes")
    }
}
