//! Secrets and ordinary ids of many kinds, in many shapes.

use super::Redactor;

const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const DIGITS: &str = "0123456789";
const HEX: &str = "0123456789abcdef";
const BASE32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BASE62: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn text(&mut self, alphabet: &str, length: usize) -> String {
        (0..length)
            .map(|_| char::from(alphabet.as_bytes()[self.below(alphabet.len())]))
            .collect()
    }
}

/// Prefix, alphabet and length of keys that tell the vendor.
const VENDORS: &[(&[&str], &str, usize)] = &[
    (&["sk-", "ant-api03-"], BASE62, 90),
    (&["sk-", "proj-"], BASE62, 48),
    (&["AK", "IA"], BASE32, 16),
    (&["gh", "p_"], BASE62, 36),
    (&["gh", "s_"], BASE62, 36),
    (&["github", "_pat_"], BASE62, 60),
    (&["gl", "pat-"], BASE62, 20),
    (&["xo", "xb-"], BASE62, 40),
    (&["sk_", "live_"], BASE62, 24),
    (&["AI", "za"], BASE62, 35),
    (&["GOC", "SPX-"], BASE62, 28),
    (&["h", "f_"], BASE62, 34),
    (&["np", "m_"], BASE62, 36),
    (&["dop", "_v1_"], HEX, 64),
    (&["gs", "k_"], BASE62, 52),
    (&["xa", "i-"], BASE62, 64),
    (&["pp", "lx-"], BASE62, 40),
    (&["nva", "pi-"], BASE62, 60),
    (&["hv", "s."], BASE62, 28),
    (&["dckr", "_pat_"], BASE62, 27),
    (&["lin", "_api_"], BASE62, 40),
    (&["shp", "at_"], HEX, 32),
    (&["pul", "-"], HEX, 40),
    (&["sb", "p_"], HEX, 40),
];

/// Names, with what their values are made of.
const NAMES: &[(&str, &str, usize)] = &[
    ("KIS_APP_SECRET_LIVE", BASE62, 32),
    ("API_KEY_PROD", BASE62, 32),
    ("API_KEY_2", HEX, 40),
    ("DB_PASSWORD_STAGING", BASE62, 20),
    ("PASSWORD_OLD", BASE62, 24),
    ("TOKEN_V2", BASE62, 32),
    ("ACCESS_TOKEN_EU", BASE64, 40),
    ("CLIENT_SECRET_WEB", BASE62, 32),
    ("AWS_SECRET_ACCESS_KEY_DEV", BASE64, 40),
    ("TOTP_SEED", BASE32, 32),
    ("GITHUB_PAT", BASE62, 32),
    ("REDIS_AUTH", BASE62, 32),
    ("SMTP_PASS", BASE62, 24),
    ("MYSQL_PWD", BASE62, 24),
    ("COOKIE_SALT", HEX, 32),
    ("VAULT_UNSEAL_KEY_1", BASE64, 44),
    ("X_AUTH", BASE62, 32),
    ("WEBHOOK_SECRET_EU", HEX, 64),
    ("apiKeyLive", BASE62, 32),
    ("clientSecretProd", BASE62, 32),
    ("dbPasswordStaging", BASE62, 24),
    ("harbourAccessTokenEu", BASE62, 40),
    ("signingKeyWeb", HEX, 64),
    ("jwtSecretOld", BASE62, 40),
    ("api-key-prod", BASE62, 32),
    ("db-password-staging", BASE62, 24),
    ("auth-token-v2", BASE62, 40),
    ("client-secret-web", BASE62, 32),
    ("harbour.datasource.password", BASE62, 20),
    ("quay.api.token", HEX, 40),
    ("PROD_API_KEY", BASE62, 32),
    ("LIVE_SIGNING_KEY", BASE62, 32),
    ("STRIPE_KEY_TEST", BASE62, 32),
    ("SENTRY_DSN_KEY", HEX, 32),
    ("HMAC_KEY_NEXTGEN", HEX, 64),
    ("ENCRYPTION_KEY_V3", BASE64, 44),
];

fn shapes(name: &str, value: &str) -> [String; 8] {
    [
        format!("For the quay, {name} is {value} until Friday."),
        format!("PORT=8080\n{name}={value}\nLANG=C\n"),
        format!("{{\"port\": 8080, \"{name}\": \"{value}\", \"debug\": true}}"),
        format!("port: 8080\n{name}: {value}\ndebug: true\n"),
        format!("ferryctl deploy --{name} {value} --region north"),
        format!("> GET /tides HTTP/1.1\n> {name}: {value}\n> Accept: */*\n"),
        format!("GET https://quay.example.org/tides?{name}={value}&page=2"),
        format!("2026-09-01T10:00:07Z INFO loaded {name}={value} (from vault)"),
    ]
}

#[test]
fn secrets_of_sixty_kinds_in_eight_shapes_are_markers() {
    let mut random = Random(7);
    let mut shown = Vec::new();
    let mut check = |name: &str, value: &str| {
        for text in shapes(name, value) {
            let redacted = Redactor::embedded().redact(&text).into_owned();
            if redacted.contains(value) || !redacted.contains(name) {
                shown.push(redacted);
            }
            let json = serde_json::to_string(&serde_json::json!({ "output": text })).unwrap();
            let redacted = Redactor::embedded().redact(&json).into_owned();
            if redacted.contains(value) {
                shown.push(redacted);
            }
        }
    };
    for _ in 0..5 {
        for (prefix, alphabet, length) in VENDORS {
            let value = prefix.concat() + &random.text(alphabet, *length);
            check("quay", &value);
        }
        for (name, alphabet, length) in NAMES {
            check(name, &random.text(alphabet, *length));
        }
    }
    assert!(shown.is_empty(), "{}: {}", shown.len(), shown.join("\n"));
}

#[test]
fn ordinary_ids_stay() {
    let mut random = Random(11);
    let mut texts = Vec::new();
    for _ in 0..10 {
        let hex40 = random.text(HEX, 40);
        let hex64 = random.text(HEX, 64);
        let hex12 = random.text(HEX, 12);
        let uuid = format!(
            "{}-{}-4{}-a{}-{}",
            random.text(HEX, 8),
            random.text(HEX, 4),
            random.text(HEX, 3),
            random.text(HEX, 3),
            random.text(HEX, 12)
        );
        let word = random.text(LOWER, 7);
        let base62 = random.text(BASE62, 24);
        let base64 = random.text(BASE64, 86);
        let number = random.text(DIGITS, 9);
        texts.extend([
            format!("commit {hex40}"),
            format!("HEAD is now at {} Move the quay", &hex40[..8]),
            format!("session {uuid} started"),
            format!("\"uuid\": \"{uuid}\", \"parentUuid\": \"{uuid}\""),
            format!("image sha256:{hex64}"),
            format!("\"integrity\": \"sha512-{base64}==\""),
            format!("checksum = \"{hex64}\""),
            format!("msg_01{base62} toolu_01{base62} call_{base62}"),
            format!("CONTAINER ID {hex12} {word}:latest"),
            format!("build-id: {hex40}"),
            format!("/var/lib/docker/overlay2/{hex64}/merged"),
            format!("data:image/png;base64,iVBORw0KGgoAAAANSUhEUg{base64}"),
            format!(
                "<div class=\"css-{} sc-{}\">",
                random.text(LOWER, 6),
                random.text(BASE62, 6)
            ),
            format!(
                "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{} anna@quay",
                &base64[..43]
            ),
            format!("SHA256:{} anna@quay (ED25519)", &base64[..43]),
            format!("key fingerprint is SHA256:{}", &base64[..43]),
            format!("PUBLIC_KEY={base64}"),
            format!("ISBN 978-3-{}-{}-1", &number[..5], &number[5..8]),
            format!("order number {number}, invoice R-2024-{}", &number[..4]),
            format!("token_count: {number}, total_tokens: {number}, max_tokens=4096"),
            format!("password_reset_url: https://quay.example.org/reset/{base62}"),
            format!("SECRET_NAME=my-{word}-name"),
            format!("author: {word}, pat: {word}"),
            format!("CACHE_KEY={word}-{hex40}"),
            format!("const password = getPassword{}();", &number[..2]),
            format!("API_KEY_PROD=${{API_KEY_{}}}", word.to_uppercase()),
            "TOKEN_V2=process.env.TOKEN_V2 and DB_PASSWORD_PROD=changeme".to_owned(),
            "API_KEY_PROD=<your-key> API_KEY_2=xxxxxxxxxxxxxxxxxxxx".to_owned(),
            format!("next_page_token_v2: {base62}"),
            format!("etag: \"{hex40}\", x-request-id: {uuid}"),
        ]);
    }
    let redacted: Vec<String> = texts
        .iter()
        .map(|text| Redactor::embedded().redact(text).into_owned())
        .filter(|text| text.contains("[redacted:"))
        .collect();
    assert!(texts.len() >= 300);
    assert!(
        redacted.len() <= 1,
        "{}: {}",
        redacted.len(),
        redacted.join("\n")
    );
}

#[test]
fn shapes_of_files_and_commands_hide_their_values() {
    let value = ["q7Wm2Rx9", "Lk4Tz8Vb", "n3Ej5Ys6"].concat();
    for text in [
        "[default]\naws_secret_access_key = {}\n",
        "[server]\napi_token_prod = \"{}\"\n",
        "export HARBOUR_TOKEN_V2='{}'",
        "$env:API_KEY_PROD = \"{}\"",
        "set -gx API_KEY_PROD {}",
        "ENV API_KEY_PROD {}",
        "docker run -e API_KEY_PROD={} quay",
        "ferry --api-key-prod={} --dry",
        "Cookie: quay_session={}; theme=dark",
        "postgres://anna:{}@db.quay/x",
        "https://{}@quay.example.org/repo.git",
        "Server=quay;User Id=anna;Password={};Encrypt=true",
        "//quay.example.org/:_authToken={}\n",
        "machine quay.example.org login anna password {}",
        "db.quay:5432:harbour:anna:{}",
        "CREATE USER anna IDENTIFIED BY '{}';",
        "{\"a\":\"{\\\"apiKeyProd\\\":\\\"{}\\\"}\"}",
        "the password is {}",
        "das Passwort lautet {}",
        "AWS secret is {}",
        "- name: QUAY_API_KEY\n  value: \"{}\"",
        "{\"name\": \"QUAY_API_KEY\", \"value\": \"{}\"}",
        "SetEnvironmentVariable(\"API_KEY_PROD\", \"{}\")",
        "<apiKeyProd>{}</apiKeyProd>",
        "<add key=\"ApiKeyProd\" value=\"{}\"/>",
        "| API_KEY_PROD | {} |",
        "apiVersion: v1\nkind: Secret\ndata:\n  db-password-prod: {}==\n",
        "api_key_prod: >-\n  {}\n",
        "redis-cli -a {} ping",
        "config.apiKeyProd = '{}';",
    ] {
        let text = text.replace("{}", &value);
        let redacted = Redactor::embedded().redact(&text).into_owned();
        assert!(!redacted.contains(&value), "{redacted}");
    }
}
