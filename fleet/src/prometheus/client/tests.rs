//! Answers that no sound Prometheus gives; a real one is asked in `tests/tests/suggest.rs`.

use std::io::Write as _;
use std::net::TcpListener;
use std::thread::JoinHandle;

use heapwarden_harness::stub_server;

use super::*;

/// Answers one request after the other with `answers`, and gives the requests back.
fn server(answers: Vec<String>) -> (Client, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://u:p@{}/prom/", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let mut requests = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let (head, body) = stub_server::request(&mut stream).expect("a whole request");
            requests.push(head + &String::from_utf8(body).unwrap());
            stream.write_all(answer.as_bytes()).unwrap();
        }
        requests
    });
    let address = ServerAddress::new(&address).unwrap();
    (Client::new(address, Duration::from_secs(60), None), serving)
}

fn http(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

/// One time.
fn once() -> Span {
    Span::covering(7, 1, 1)
}

fn error_of(answer: String) -> String {
    let (client, serving) = server(vec![answer]);
    let error = client
        .range("up", once())
        .expect_err("no answer of Prometheus");
    serving.join().unwrap();
    error.to_string()
}

#[test]
fn every_failure_is_a_sentence_that_says_what_to_do() {
    let html = error_of(http("200 OK", "<html>welcome</html>"));
    assert!(
        html.contains("not as Prometheus does") && html.contains("path prefix"),
        "{html}"
    );
    assert!(error_of(http("404 Not Found", "no")).contains("HTTP 404"));
    assert!(error_of(http("200 OK", "{\"status\":\"success\"}")).contains("no data"));
    assert!(error_of(http("200 OK", "{\"status\":\"fine\"}")).contains("neither success"));
    assert!(error_of(http("401 Unauthorized", "")).contains("--bearer-token-file"));
    let moved = "HTTP/1.1 302 Found\r\nLocation: http://b/x\r\nContent-Length: 0\r\n\r\n";
    let moved = error_of(moved.into());
    assert!(moved.contains("redirects to"), "{moved}");
    let bad = error_of(http(
        "400 Bad Request",
        r#"{"status":"error","errorType":"bad_data","error":"parse\u001b[31m error"}"#,
    ));
    assert!(
        bad.contains("bad_data") && bad.contains("query: up"),
        "{bad}"
    );
    assert!(!bad.contains('\u{1b}'), "{bad}");
    let much = error_of(http(
        "422 Unprocessable Entity",
        r#"{"status":"error","errorType":"execution","error":"query processing would load too many samples into memory in query execution"}"#,
    ));
    assert!(much.contains("coarser --step"), "{much}");
}

#[test]
fn nobody_listening_is_said_without_the_password() {
    let nobody = stub_server::nobody();
    let address = ServerAddress::new(&format!("http://u:secret@{nobody}")).unwrap();
    let client = Client::new(address, Duration::from_secs(60), None);
    let error = client.range("up", once()).unwrap_err().to_string();
    assert!(error.contains("cannot reach Prometheus"), "{error}");
    assert!(!error.contains("secret"), "{error}");
}

#[test]
fn a_silent_server_is_not_waited_for_without_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address =
        ServerAddress::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let client = Client::new(address, Duration::from_secs(1), None);
    let error = client.range("up", once()).unwrap_err().to_string();
    assert!(error.contains("not answered within 1 s"), "{error}");
}

#[test]
fn what_is_too_much_at_once_is_asked_in_halves() {
    let too_much = http(
        "422 Unprocessable Entity",
        r#"{"status":"error","errorType":"execution","error":"too many samples"}"#,
    );
    let part = |values: &str| {
        http(
            "200 OK",
            &format!(
                r#"{{"status":"success","warnings":["partial"],"data":{{"resultType":"matrix","result":[{{"metric":{{"a":"b"}},"values":{values}}}]}}}}"#
            ),
        )
    };
    let (client, serving) = server(vec![
        too_much,
        part(r#"[[100,"1"],[110,"2"]]"#),
        part(r#"[[120,"3"]]"#),
    ]);
    let series = client
        .range("m{x=\"y z\"}", Span::covering(129, 30, 10))
        .unwrap();
    assert_eq!(series.len(), 1);
    assert_eq!(series[0].points, [(100.0, 1.0), (110.0, 2.0), (120.0, 3.0)]);
    assert_eq!(client.warnings(), ["partial"]);
    let requests = serving.join().unwrap();
    assert!(
        requests[0].starts_with("POST /prom/api/v1/query_range "),
        "{}",
        requests[0]
    );
    assert!(requests[0].contains("Basic dTpw"), "{}", requests[0]);
    let times: Vec<bool> = [
        "start=100&end=120",
        "start=100&end=110",
        "start=120&end=120",
    ]
    .iter()
    .zip(&requests)
    .map(|(expected, request)| request.contains(expected))
    .collect();
    assert_eq!(times, [true; 3], "{requests:#?}");
}

#[test]
fn the_tenant_goes_with_every_request_and_series_are_listed_by_their_labels() {
    let matrix = r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#;
    let series = r#"{"status":"success","data":[{"__name__":"m","account":"/shop"}]}"#;
    let (client, serving) = server(vec![http("200 OK", matrix), http("200 OK", series)]);
    let client = client.with_tenant(Some("team-7".into()));
    assert_eq!(client.range("up", once()).unwrap(), []);
    let found = client.labels(&["m{a=\"b\"}".into(), "n".into()], once());
    assert_eq!(found.unwrap()[0]["account"], "/shop");
    let requests = serving.join().unwrap();
    for request in &requests {
        let request = request.to_lowercase();
        assert!(request.contains("x-scope-orgid: team-7\r\n"), "{request}");
    }
    assert!(requests[1].starts_with("POST /prom/api/v1/series "));
    assert_eq!(
        requests[1].matches("match%5B%5D=").count(),
        2,
        "{requests:?}"
    );
}
