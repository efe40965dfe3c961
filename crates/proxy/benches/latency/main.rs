//! What the proxy adds to requests, beside a bare streaming proxy, in one run.
//!
//! `cargo bench -p throughline-proxy --bench latency` starts an upstream that answers at once, a bare reverse proxy
//! written with hyper, and the proxy with everything on (sessions, archive in SQLite, metrics), each in a process of its
//! own, and prints latencies, throughput, processor time and memory of each. `-- quick` does less of everything.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench")]

mod servers;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let role = arguments.get(1).map(String::as_str);
    match role {
        Some("simulator") => return servers::simulator(),
        Some("upstream") => return servers::upstream(),
        Some("bare") => return servers::bare(arguments[2].parse().unwrap()),
        Some("proxy") => return servers::proxy(arguments[2].parse().unwrap(), &arguments[3]),
        Some("load") => {
            let (address, bytes) = (arguments[2].parse().unwrap(), arguments[3].parse().unwrap());
            let turns = arguments
                .get(4)
                .map_or(TURNS, |turns| turns.parse().unwrap());
            let latencies = Clients::start(address, bytes, turns).run(Duration::from_secs(8));
            return println!("{} requests", latencies.len());
        }
        _ => {}
    }
    let quick = arguments.iter().any(|argument| argument == "quick");
    let rounds = if quick { 3 } else { 12 };
    let upstream = Server::start(&["upstream"]);
    let bare = Server::start(&["bare", &upstream.address.to_string()]);
    println!(
        "| body | path | p50 ms | p99 ms | added p50 ms | of bare | first byte p50 ms | whole stream p50 ms |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for (name, bytes) in SIZES {
        let tracked = Server::start(&["proxy", &upstream.address.to_string(), "tracked"]);
        let rewritten = Server::start(&["proxy", &upstream.address.to_string(), "rewritten"]);
        let off = Server::start(&["proxy", &upstream.address.to_string(), "off"]);
        for server in [&tracked, &rewritten, &off] {
            server.warm_up();
        }
        let targets = [
            ("direct", &upstream),
            ("bare", &bare),
            ("switched off", &off),
            ("tracked", &tracked),
            ("rewritten", &rewritten),
        ];
        let mut measured: Vec<Measured> = targets.iter().map(|_| Measured::default()).collect();
        // All in turn, so that what the machine does besides meets all alike.
        for round in 0..rounds {
            for (index, (_, server)) in targets.iter().enumerate() {
                measured[index].add(session(server.address, bytes, round, 12));
            }
        }
        let direct = measured[0].latency(0.5);
        let added = |m: &Measured| m.latency(0.5).saturating_sub(direct);
        let bare_added = added(&measured[1]);
        for ((path, _), m) in targets.iter().zip(&measured) {
            let ratio = added(m).as_secs_f64() / bare_added.as_secs_f64().max(1e-9);
            println!(
                "| {name} | {path} | {} | {} | {} | {} | {} | {} |",
                ms(m.latency(0.5)),
                ms(m.latency(0.99)),
                ms(added(m)),
                if *path == "direct" {
                    String::new()
                } else {
                    format!("{ratio:.2}")
                },
                ms(quantile(&m.first_bytes, 0.5)),
                ms(quantile(&m.streams, 0.5)),
            );
        }
        println!(
            "| {name} | first sight of a session | {} | | {} | | | |",
            ms(quantile(&measured[3].first_sights, 0.5)),
            ms(quantile(&measured[3].first_sights, 0.5).saturating_sub(direct)),
        );
    }
    println!();
    println!(
        "| body | path | requests/s, 16 connections | of direct | p99 ms | of direct | CPU ms a request | of bare | RSS MB | messages known |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (name, bytes) in [SIZES[0], SIZES[2]] {
        let tracked = Server::start(&["proxy", &upstream.address.to_string(), "tracked"]);
        tracked.warm_up();
        let mut direct = None;
        let mut bare_cpu = 0.0;
        let mut known = 0;
        for (path, server, turns) in [
            ("direct", &upstream, TURNS),
            ("bare", &bare, TURNS),
            ("tracked, conversations of 40 requests", &tracked, TURNS),
            ("tracked, one conversation each", &tracked, usize::MAX),
        ] {
            let seconds = if quick { 2 } else { 8 };
            let loaded = Loaded::of(server, bytes, Duration::from_secs(seconds), turns);
            let (rate, p99) = (loaded.rate, loaded.p99);
            let (direct_rate, direct_p99) = *direct.get_or_insert((rate, p99));
            if path == "bare" {
                bare_cpu = loaded.cpu_ms;
            }
            if path.starts_with("tracked") {
                known += loaded.messages;
            }
            println!(
                "| {name} | {path} | {rate:.0} | {:.2} | {} | {:.2} | {:.3} | {} | {:.0} | {} |",
                rate / direct_rate,
                ms(p99),
                p99.as_secs_f64() / direct_p99.as_secs_f64(),
                loaded.cpu_ms,
                if path.starts_with("tracked") {
                    format!("{:.2}", loaded.cpu_ms / bare_cpu)
                } else {
                    String::new()
                },
                server.rss_mb(),
                if path.starts_with("tracked") {
                    known.to_string()
                } else {
                    String::new()
                },
            );
        }
    }
    swapping(&upstream, quick);
    beside_updates(quick);
}

/// Clients at a time.
const CONNECTIONS: usize = 16;
/// Requests of a conversation under load.
const TURNS: usize = 40;

/// A conversation that grows fast, one request after the other: those that swap, and the others.
fn swapping(upstream: &Server, quick: bool) {
    let proxy = Server::start(&["proxy", &upstream.address.to_string(), "drafting"]);
    proxy.warm_up();
    let answers: Vec<Grown> = (0..if quick { 2 } else { 8 })
        .flat_map(|round| growing(proxy.address, &format!("swapping {round}")))
        .collect();
    let p50 = |swaps: bool| {
        let times: Vec<Duration> = answers
            .iter()
            .filter(|grown| grown.is_swap == swaps)
            .map(|grown| grown.took)
            .collect();
        (times.len(), quantile(&times, 0.5))
    };
    let ((swaps, swap), (others, other)) = (p50(true), p50(false));
    println!();
    println!("| requests | how many | p50 ms | more, ms |");
    println!("| --- | --- | --- | --- |");
    println!(
        "| of a conversation with memories | {others} | {} | |",
        ms(other)
    );
    println!(
        "| those of them that swap | {swaps} | {} | {} |",
        ms(swap),
        ms(swap.saturating_sub(other))
    );
}

/// Clients beside each other in conversations that grow fast, before the simulated provider: with memories by code alone,
/// and by the model.
fn beside_updates(quick: bool) {
    let simulator = Server::start(&["simulator"]);
    let rounds = if quick { 1 } else { 3 };
    let mut p50 = None;
    println!();
    println!("| requests | p50 ms | of those without updates | p99 ms |");
    println!("| --- | --- | --- | --- |");
    for (name, kind) in [
        ("with memories by code", "drafting"),
        ("while memories are made by the model", "updating"),
    ] {
        let proxy = Server::start(&["proxy", &simulator.address.to_string(), kind]);
        proxy.warm_up();
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let address = proxy.address;
                std::thread::spawn(move || {
                    (0..rounds)
                        .flat_map(|round| growing(address, &format!("{kind} {number} {round}")))
                        .map(|grown| grown.took)
                        .collect::<Vec<Duration>>()
                })
            })
            .collect();
        let latencies: Vec<Duration> = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect();
        let middle = quantile(&latencies, 0.5);
        let without = *p50.get_or_insert(middle);
        println!(
            "| {name} | {} | {:.2} | {} |",
            ms(middle),
            middle.as_secs_f64() / without.as_secs_f64(),
            ms(quantile(&latencies, 0.99)),
        );
    }
}

/// A request of a conversation that grows.
struct Grown {
    took: Duration,
    /// Whether it put another memory in the place of messages.
    is_swap: bool,
}

/// A conversation past some windows.
fn growing(address: SocketAddr, name: &str) -> Vec<Grown> {
    let mut connection = Connection::open(address);
    let mut conversation = Conversation::of(2_000, name);
    let mut grown = Vec::new();
    let mut epoch = None;
    for turn in 0..150 {
        let answered = connection.ask(&conversation.request(false));
        if turn > 0 {
            grown.push(Grown {
                took: answered.whole,
                is_swap: answered.epoch != epoch,
            });
        }
        epoch = answered.epoch;
        conversation.go_on(turn);
        conversation.add(turn, 2_000);
        conversation.go_on(turn);
        std::thread::sleep(Duration::from_millis(20));
    }
    grown
}

const SIZES: [(&str, usize); 3] = [("2 KB", 2_000), ("100 KB", 100_000), ("1 MB", 1_000_000)];

/// A server in a process of its own.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        Self {
            child,
            address: line.trim().parse().unwrap(),
        }
    }

    /// Has it make its tables: the first conversations wait for them.
    fn warm_up(&self) {
        session(self.address, 10_000, usize::MAX, 4);
        std::thread::sleep(Duration::from_secs(1));
    }

    /// Processor time so far.
    fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap()
            .split_whitespace()
            .collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        // A tick is 10 ms on Linux.
        Duration::from_millis(ticks * 10)
    }

    fn rss_mb(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS"))
            .unwrap();
        let kb: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kb / 1024.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Default)]
struct Measured {
    latencies: Vec<Duration>,
    first_sights: Vec<Duration>,
    first_bytes: Vec<Duration>,
    streams: Vec<Duration>,
}

impl Measured {
    fn add(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.first_sights.extend(other.first_sights);
        self.first_bytes.extend(other.first_bytes);
        self.streams.extend(other.streams);
    }

    fn latency(&self, quantile: f64) -> Duration {
        self::quantile(&self.latencies, quantile)
    }
}

/// One conversation: its requests grow a little with each turn. Half of them ask for a stream.
fn session(address: SocketAddr, bytes: usize, round: usize, turns: usize) -> Measured {
    let mut connection = Connection::open(address);
    let mut conversation = Conversation::of(bytes, &format!("{address} {round}"));
    let mut measured = Measured::default();
    for turn in 0..turns {
        let is_streaming = turn % 2 == 1;
        let request = conversation.request(is_streaming);
        let answered = connection.ask(&request);
        if turn == 0 {
            measured.first_sights.push(answered.whole);
        } else if is_streaming {
            measured.first_bytes.push(answered.first_byte);
            measured.streams.push(answered.whole);
        } else if turn > 2 {
            measured.latencies.push(answered.whole);
        }
        conversation.go_on(turn);
        // What runs beside the session has time to end.
        std::thread::sleep(Duration::from_millis(10));
    }
    measured
}

struct Conversation {
    messages: String,
}

impl Conversation {
    /// With about this many bytes, in messages of about 4,000, as agents write them.
    fn of(bytes: usize, name: &str) -> Self {
        let mut messages = format!(r#"{{"role":"user","content":"This is conversation {name}."}}"#);
        let mut index = 0;
        while messages.len() < bytes.saturating_sub(400) {
            let text = lines(index, 4_000.min(bytes - messages.len()));
            let result = index % 2 == 1;
            if result {
                messages.push_str(&format!(r#",{{"role":"user","content":"{text}"}}"#));
            } else {
                messages.push_str(&format!(
                    r#",{{"role":"assistant","content":[{{"type":"text","text":"{text}"}}]}}"#
                ));
            }
            index += 1;
        }
        if index % 2 == 1 {
            messages.push_str(r#",{"role":"user","content":"Go on."}"#);
        }
        Self { messages }
    }

    fn request(&self, is_streaming: bool) -> Vec<u8> {
        let stream = if is_streaming {
            r#","stream":true"#
        } else {
            ""
        };
        let body = format!(
            r#"{{"model":"claude-opus-4-6","max_tokens":1000{stream},"system":"You are careful.","tools":[{{"name":"read","input_schema":{{"type":"object"}}}}],"messages":[{}]}}"#,
            self.messages
        );
        let mut request = format!(
            "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body.as_bytes());
        request
    }

    /// The model says something long.
    fn add(&mut self, turn: usize, bytes: usize) {
        let text = lines(turn, bytes);
        self.messages.push_str(&format!(
            r#",{{"role":"assistant","content":[{{"type":"text","text":"{text}"}}]}},{{"role":"user","content":"Go on."}}"#
        ));
    }

    fn go_on(&mut self, turn: usize) {
        self.messages.push_str(&format!(
            r#",{{"role":"assistant","content":[{{"type":"text","text":"{}"}}]}},{{"role":"user","content":"Turn {turn}, please."}}"#,
            servers::ANSWER
        ));
    }
}

fn lines(index: usize, bytes: usize) -> String {
    (0..bytes / 40)
        .map(|line| {
            format!(
                "line {index} {line:05}: \\\"value\\\" = {:08x}\\n",
                line * 7919 + index
            )
        })
        .collect()
}

struct Answered {
    first_byte: Duration,
    whole: Duration,
    /// What the proxy says of itself.
    epoch: Option<u64>,
}

struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            buffer: vec![0; 65_536],
        }
    }

    fn ask(&mut self, request: &[u8]) -> Answered {
        let begin = Instant::now();
        self.stream.write_all(request).unwrap();
        let mut answer: Vec<u8> = Vec::with_capacity(4096);
        let mut body_start = None;
        let mut first_byte = None;
        loop {
            let count = self.stream.read(&mut self.buffer).unwrap();
            assert!(count > 0, "closed");
            answer.extend_from_slice(&self.buffer[..count]);
            if body_start.is_none() {
                body_start = find(&answer, b"\r\n\r\n").map(|at| at + 4);
            }
            let Some(start) = body_start else { continue };
            if answer.len() > start && first_byte.is_none() {
                first_byte = Some(begin.elapsed());
            }
            let head = std::str::from_utf8(&answer[..start])
                .unwrap()
                .to_lowercase();
            assert!(
                head.starts_with("http/1.1 200"),
                "{}",
                String::from_utf8_lossy(&answer)
            );
            let is_done = match header(&head, "content-length") {
                Some(length) => (answer.len() - start) as u64 >= length,
                None => answer.ends_with(b"0\r\n\r\n"),
            };
            if is_done {
                let whole = begin.elapsed();
                return Answered {
                    first_byte: first_byte.unwrap_or(whole),
                    whole,
                    epoch: header(&head, "x-throughline-epoch"),
                };
            }
        }
    }
}

struct Loaded {
    /// Messages that were sent or said, each once.
    messages: usize,
    rate: f64,
    p99: Duration,
    cpu_ms: f64,
}

impl Loaded {
    fn of(server: &Server, bytes: usize, time: Duration, turns: usize) -> Self {
        let clients = Clients::start(server.address, bytes, turns);
        let (cpu, begin) = (server.cpu(), Instant::now());
        let latencies = clients.run(time);
        let took = begin.elapsed();
        let cpu = server.cpu() - cpu;
        let conversations = CONNECTIONS + latencies.len() / turns;
        let first_messages = Conversation::of(bytes, "")
            .messages
            .matches("{\"role\"")
            .count();
        Self {
            messages: conversations * first_messages + 2 * latencies.len(),
            rate: latencies.len() as f64 / took.as_secs_f64(),
            p99: quantile(&latencies, 0.99),
            cpu_ms: cpu.as_secs_f64() * 1000.0 / latencies.len() as f64,
        }
    }
}

/// Clients that ask one after the other, each in conversations of its own. The first requests of the first ones come
/// before the clock runs.
struct Clients {
    begin: Arc<Barrier>,
    until: Arc<OnceLock<Instant>>,
    threads: Vec<JoinHandle<Vec<Duration>>>,
}

impl Clients {
    fn start(address: SocketAddr, bytes: usize, turns: usize) -> Self {
        let begin = Arc::new(Barrier::new(CONNECTIONS + 1));
        let until = Arc::new(OnceLock::new());
        let threads = (0..CONNECTIONS)
            .map(|number| {
                let (begin, until) = (Arc::clone(&begin), Arc::clone(&until));
                std::thread::spawn(move || {
                    let mut latencies = Vec::new();
                    let mut connection = Connection::open(address);
                    let name = |round: usize| format!("{address} {turns} {number} {round}");
                    let mut conversation = Conversation::of(bytes, &name(0));
                    connection.ask(&conversation.request(false));
                    begin.wait();
                    let is_over = || until.get().is_some_and(|until| Instant::now() > *until);
                    for round in 1.. {
                        for turn in 0..turns {
                            if is_over() {
                                return latencies;
                            }
                            conversation.go_on(turn);
                            let answered = connection.ask(&conversation.request(false));
                            latencies.push(answered.whole);
                        }
                        conversation = Conversation::of(bytes, &name(round));
                    }
                    latencies
                })
            })
            .collect();
        // What the first requests have left to be done beside them does not count.
        std::thread::sleep(Duration::from_secs(1));
        Self {
            begin,
            until,
            threads,
        }
    }

    fn run(self, time: Duration) -> Vec<Duration> {
        self.until.get_or_init(|| Instant::now() + time);
        self.begin.wait();
        let threads = self.threads.into_iter();
        threads.flat_map(|thread| thread.join().unwrap()).collect()
    }
}

fn header(head: &str, name: &str) -> Option<u64> {
    let line = head.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim_start_matches(':').trim().parse().ok()
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn quantile(times: &[Duration], quantile: f64) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    let at = ((times.len() as f64 - 1.0) * quantile).round().max(0.0) as usize;
    times.get(at).copied().unwrap_or_default()
}

fn ms(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64() * 1000.0)
}
