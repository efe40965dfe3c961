//! Secrets and ordinary ids of many kinds, planted in a conversation.

use serde_json::json;
use throughline_memory::compact::{Form, Options, compact};
use throughline_memory::redact::Redactor;

use super::conversation::{count, messages};

const BASE62: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE36: &str = "0123456789abcdefghijklmnopqrstuvwxyz";
const UPPER36: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const HEX: &str = "0123456789abcdef";
const URL64: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

/// The same numbers in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % limit
    }

    fn from(&mut self, alphabet: &str, length: usize) -> String {
        let letters = alphabet.as_bytes();
        (0..length)
            .map(|_| char::from(letters[self.below(letters.len())]))
            .collect()
    }

    fn uuid(&mut self) -> String {
        let parts = [8, 4, 4, 4, 12].map(|length| self.from(HEX, length));
        parts.join("-")
    }
}

/// The name of a variable, what the value begins with, its alphabet and length. The beginnings are in two parts, so that
/// no credential stands in this file.
const KINDS: &[(&str, &[&str], &str, usize)] = &[
    ("ANTHROPIC_API_KEY", &["sk-", "ant-api03-"], URL64, 80),
    ("OPENAI_API_KEY", &["sk-", "proj-"], BASE62, 48),
    ("OPENROUTER_KEY", &["sk-", "or-v1-"], HEX, 64),
    (
        "AWS_ACCESS_KEY_ID",
        &["AK", "IA"],
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        16,
    ),
    ("GH_TOKEN", &["gh", "p_"], BASE62, 36),
    ("GITHUB_PAT_FINE", &["github", "_pat_"], BASE62, 60),
    ("GITLAB_TOKEN", &["glp", "at-"], URL64, 20),
    ("SLACK_BOT_TOKEN", &["xo", "xb-"], BASE62, 40),
    ("STRIPE_KEY", &["sk_", "live_"], BASE62, 24),
    ("GOOGLE_MAPS_KEY", &["AI", "za"], URL64, 35),
    ("HF_TOKEN", &["h", "f_"], BASE62, 34),
    ("NPM_TOKEN", &["np", "m_"], BASE62, 36),
    (
        "SENDGRID_API_KEY",
        &["S", "G.", "ngeVfQFY", "QlKU0ufo8x5d1A."],
        URL64,
        43,
    ),
    ("DIGITALOCEAN_TOKEN", &["dop", "_v1_"], HEX, 64),
    ("GROQ_API_KEY", &["gs", "k_"], BASE62, 52),
    ("LINEAR_API_KEY", &["lin", "_api_"], BASE62, 40),
    ("NOTION_TOKEN", &["nt", "n_"], BASE62, 46),
    ("SHOPIFY_TOKEN", &["shp", "at_"], HEX, 32),
    ("VAULT_TOKEN", &["hv", "s."], BASE62, 90),
    ("POSTMAN_API_KEY", &["PM", "AK-"], HEX, 60),
    ("KIS_APP_SECRET_LIVE", &[], BASE62, 32),
    ("KIS_APP_KEY_LIVE", &[], BASE62, 32),
    ("APP_SECRET_PROD", &[], BASE62, 32),
    ("API_KEY_PROD", &[], BASE62, 32),
    ("API_KEY_2", &[], BASE62, 24),
    ("STRIPE_SECRET_TEST", &[], BASE62, 32),
    ("DB_PASSWORD_STAGING", &[], BASE62, 24),
    ("PASSWORD_OLD", &[], BASE62, 20),
    ("TOKEN_V2", &[], BASE62, 32),
    ("ACCESS_TOKEN_EU", &[], HEX, 40),
    ("SECRET_KEY_BASE", &[], HEX, 64),
    ("JWT_SECRET_OLD", &[], URL64, 43),
    ("CLIENT_SECRET_WEB", &[], BASE62, 32),
    ("AWS_SECRET_ACCESS_KEY_DEV", &[], BASE62, 40),
    ("TOTP_SEED", &[], "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 32),
    ("ENCRYPTION_KEY", &[], HEX, 64),
    ("NEXTAUTH_SECRET", &[], URL64, 43),
    ("SESSION_SECRET", &[], BASE62, 32),
    ("GITHUB_PAT", &[], HEX, 40),
    ("SENTRY_DSN", &[], HEX, 32),
    ("SMTP_PASS", &[], BASE62, 16),
    ("MYSQL_PWD", &[], BASE62, 20),
    ("REDIS_AUTH", &[], BASE62, 32),
    ("BASIC_AUTH", &[], BASE62, 28),
    ("COOKIE_SALT", &[], BASE62, 32),
    ("HMAC_SALT", &[], HEX, 32),
    ("PASSPHRASE", &[], BASE62, 32),
    ("CREDENTIALS", &[], BASE62, 32),
    ("apiKeyLive", &[], BASE62, 32),
    ("clientSecretProd", &[], BASE62, 32),
    ("dbPasswordStaging", &[], BASE62, 32),
    ("x-api-key", &[], BASE62, 32),
    ("X_AUTH", &[], BASE62, 32),
    ("SIGNING_KEY", &[], BASE62, 44),
    ("MASTER_KEY", &[], HEX, 32),
    ("VAULT_UNSEAL_KEY_1", &[], BASE62, 44),
    ("RECOVERY_CODE", &[], UPPER36, 24),
    ("OTP_SECRET", &[], "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 32),
    ("WEBHOOK_SECRET_EU", &[], BASE36, 32),
    ("refresh-token-prod", &[], URL64, 48),
];

/// A secret in one of eight shapes. The names of headers and options have hyphens.
fn shaped(shape: usize, name: &str, value: &str) -> String {
    let kebab = name.replace('_', "-");
    match shape {
        0 => format!("For the quay, {name} is {value} until Monday."),
        1 => format!("PORT=8431\n{name}={value}\nLANG=C"),
        2 => format!("{{\"port\": 8431, \"{name}\": \"{value}\", \"lang\": \"C\"}}"),
        3 => format!("ferry:\n  port: 8431\n  {name}: {value}\n"),
        4 => {
            let mut option = String::new();
            for c in kebab.chars() {
                if c.is_uppercase() && option.ends_with(|last: char| last.is_lowercase()) {
                    option.push('-');
                }
                option.push(c);
            }
            format!("ferry deploy --{} {value} --verbose", option.to_lowercase())
        }
        5 => format!("> GET /quay HTTP/1.1\n> {kebab}: {value}\n< HTTP/1.1 200 OK"),
        6 => format!("curl 'https://quay.example/v1/ships?page=2&{name}={value}&lang=de'"),
        _ => format!("2026-09-01T10:00:07Z INFO loaded {name}={value} from the vault"),
    }
}

fn secrets() -> Vec<(String, String)> {
    let mut draw = Draw(0x5eed_cafe_f00d_0001);
    let mut planted = Vec::new();
    for (index, (name, start, alphabet, length)) in KINDS.iter().enumerate() {
        for round in 0..5 {
            let value = start.concat() + &draw.from(alphabet, *length);
            let text = shaped((index + round) % 8, name, &value);
            planted.push((value, text));
        }
    }
    planted
}

/// Ordinary values that look like secrets or stand beside telling names: the value and the text with it.
fn ordinary() -> Vec<(String, String)> {
    let mut draw = Draw(0x0dd1_d0c5_0000_0007);
    let mut planted = Vec::new();
    for round in 0..10 {
        let number = 1000 + draw.below(9000);
        let mut add = |value: String, text: &str| {
            let text = text.replace("{}", &value);
            planted.push((value, text));
        };
        add(draw.from(HEX, 40), "commit {}\nAuthor: anna");
        add(draw.from(HEX, 12), "[main {}] Paint the quay");
        add(draw.uuid(), "session {} was restored");
        add(draw.uuid(), "\"requestId\": \"{}\"");
        add(draw.from(HEX, 64), "Digest: sha256:{}");
        add(draw.from(BASE62, 86), "\"integrity\": \"sha512-{}==\"");
        add(draw.from(BASE62, 24), "\"id\": \"msg_01{}\"");
        add(draw.from(BASE62, 24), "tool call toolu_01{} has ended");
        add(draw.from(HEX, 12), "CONTAINER ID {} is up");
        add(draw.from(HEX, 64), "removed container {}");
        add(draw.from(BASE36, 16), "build id: {}");
        add(
            format!("/srv/quay/{}/ferry.rs", draw.from(BASE36, 12)),
            "open {} and look",
        );
        add(draw.from(BASE62, 60), "data:image/png;base64,iVBORw0KGgo{}");
        add(draw.from(URL64, 6), "class=\"quay_ship__{}\"");
        add(
            draw.from(BASE62, 68),
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{} ana@quay",
        );
        add(draw.from(BASE62, 43), "fingerprint SHA256:{} (ED25519)");
        add(format!("978-3-16-14{number}-0"), "ISBN {} on the shelf");
        add(format!("ORD-2026-{number}-QX"), "order {} is on its way");
        add(format!("4{number}"), "token_count: {}");
        add(format!("{number}"), "max_tokens={}");
        add(
            format!("harbour{number}"),
            "the key: {} of all words, as they say",
        );
        add(
            format!("https://quay.example/reset/{number}"),
            "password_reset_url: {}",
        );
        add(format!("quay-secret-name-{number}"), "SECRET_NAME={}");
        add(format!("anna{number}"), "author: {}");
        add(format!("Patrick{round}"), "pat: {}");
        add(draw.from(HEX, 32), "cache_key={}");
        add(draw.from(HEX, 40), "ETag: \"{}\"");
        add(draw.from(BASE36, 20), "pod ferry-auth-{} is running");
        add(draw.from(HEX, 32), "public_key: {}");
        add(format!("${{QUAY_TOKEN_{number}}}"), "API_KEY_PROD={}");
    }
    planted
}

#[test]
fn no_planted_secret_is_shown() {
    let planted = secrets();
    assert_eq!((KINDS.len(), planted.len()), (60, 300));
    let shown: Vec<_> = planted
        .iter()
        .filter(|(value, text)| Redactor::embedded().redact(text).contains(value))
        .map(|(_, text)| text)
        .collect();
    assert_eq!(shown.len(), 0, "{shown:#?}");
    for chunk in planted.chunks(60) {
        let mut turns = vec![json!({"role": "user", "content": "Check what the vault has."})];
        for (index, (_, text)) in chunk.iter().enumerate() {
            let id = format!("t{index}");
            turns.push(json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": format!("vault {index} # {text}")}}]}));
            turns.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text, "is_error": index % 7 == 0}]}));
            if index % 3 == 0 {
                turns.push(
                    json!({"role": "assistant", "content": [{"type": "text", "text": text}]}),
                );
                turns.push(json!({"role": "user", "content": format!("Always keep this: {text}")}));
            }
        }
        let messages = messages(json!(turns));
        for form in [Form::Markdown, Form::Json] {
            let options = Options {
                form,
                ..Options::new(100_000, &count)
            };
            let memory = compact(&messages, &options).unwrap().text;
            let shown: Vec<_> = chunk
                .iter()
                .filter(|(value, _)| memory.contains(value))
                .collect();
            assert_eq!(shown.len(), 0, "{shown:#?}");
        }
    }
}

#[test]
fn ordinary_ids_stay() {
    let planted = ordinary();
    assert_eq!(planted.len(), 300);
    let gone: Vec<_> = planted
        .iter()
        .filter(|(value, text)| !Redactor::embedded().redact(text).contains(value))
        .map(|(_, text)| text)
        .collect();
    assert_eq!(gone.len(), 0, "{gone:#?}");
}

#[test]
fn a_value_that_is_secret_in_one_place_is_so_in_every_other() {
    let value = ["4be07d2a", "85e36b90", "7f41d8ce", "52a03b6e"].concat();
    let check = |told: &str| {
        let messages = messages(json!([
            {"role": "user", "content": format!("Is {value} still valid for the ferry?")},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "pass show quay/ferry"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": value}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "curl -sv https://quay.example/v1"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t2", "content": told.replace("{}", &value)}]},
            {"role": "assistant", "content": [{"type": "text", "text": format!("The quay refuses {value}, so I will ask for another one.")}]},
            {"role": "user", "content": format!("Always try {value} first.")},
        ]));
        for split in [0, 3, 6] {
            let options = Options {
                form: Form::Json,
                ..Options::new(20_000, &count)
            };
            let prior = (split > 0).then(|| compact(&messages[..split], &options).unwrap().memory);
            let options = Options {
                form: Form::Json,
                prior: prior.as_ref(),
                ..Options::new(20_000, &count)
            };
            let text = compact(&messages, &options).unwrap().text;
            assert!(!text.contains(&value), "{split}: {text}");
            assert!(text.contains("[redacted:"), "{split}: {text}");
        }
    };
    check("> Authorization: token {}\n< HTTP/2 401");
    check("FERRY_TOKEN_EU={}");
    check("Cookie: theme=dark; sid={}");
    check("{\"clientSecretProd\": \"{}\"}");
}
