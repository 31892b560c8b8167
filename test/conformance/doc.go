// Package conformance compares what the gateway sends with what Apprise sends for the same URLs
// and messages, as recorded from it: testdata/apprise1 is from version 1.13.0, and testdata/apprise2
// has services that version 2 has added, of Delta Chat only the URLs that it refuses. A file has the
// cases of one service, as JSON. Nothing leaves the process: an [http.RoundTripper] answers.
//
// A case is a URL, the name of a message, the answers of the destination, what a client has to be
// told, and the requests:
//
//	zcat test/conformance/testdata/apprise1/gotify.json.gz
//
// Each case passes, or testdata/judged.json says why the gateway deliberately does something else.
// docs/deviations.md has that for users.
//
//	go test ./test/conformance -run /apprise1/gotify
package conformance
