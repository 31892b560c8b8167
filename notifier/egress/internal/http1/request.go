package http1

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// maxBody is the size of the longest body that a [Client] sends. The whole request
// is written before the answer is read. A body of this size fits into the send
// buffer of a connection, so the write does not block if the server answers without
// reading the body.
const maxBody = 16 << 10

// CanSend reports whether a [Client] can send r. That needs a valid request with
// scheme http and a body of known length of at most 16 KiB. Header fields about the
// connection, such as Expect and Upgrade, must not be set, and the context must have
// no [httptrace.ClientTrace].
func CanSend(r *http.Request) bool {
	return canCheck && r.URL != nil && r.URL.Scheme == "http" &&
		isPlainHost(r.URL.Host) && (r.Host == "" || isPlainHost(r.Host)) &&
		r.URL.Opaque == "" && !hasControl(r.URL.RawQuery) &&
		isPlainMethod(r.Method) && isPlainHeader(r.Header) && hasShortBody(r) &&
		!r.Close && len(r.TransferEncoding) == 0 && len(r.Trailer) == 0 &&
		r.Cancel == nil && //nolint:staticcheck // deprecated, but a caller may have set it
		httptrace.ContextClientTrace(r.Context()) == nil
}

// isPlainHost reports whether host can be sent and resolved unchanged. It must be
// ASCII without a zone.
func isPlainHost(host string) bool {
	return host != "" && httpguts.ValidHostHeader(host) && !strings.Contains(host, "%")
}

func hasControl(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f {
			return true
		}
	}
	return false
}

// isPlainMethod reports whether method is valid and not CONNECT. Methods have the
// syntax of names of header fields.
func isPlainMethod(method string) bool {
	return method == "" || method != http.MethodConnect && httpguts.ValidHeaderFieldName(method)
}

// isPlainHeader reports whether h is valid and has no field about the connection.
func isPlainHeader(h http.Header) bool {
	if h == nil {
		return false
	}
	for name, values := range h {
		switch name {
		case "Connection", "Expect", "Trailer", "Transfer-Encoding", "Upgrade":
			return false
		}
		if !httpguts.ValidHeaderFieldName(name) {
			return false
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return false
			}
		}
	}
	return true
}

// hasShortBody reports whether the body of r is empty or has a known length of at
// most maxBody.
func hasShortBody(r *http.Request) bool {
	if r.Body == nil || r.Body == http.NoBody {
		return r.ContentLength == 0
	}
	return r.ContentLength > 0 && r.ContentLength <= maxBody
}

// isIdempotent reports whether r may be sent again if it is not known whether the
// server got it.
func isIdempotent(r *http.Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	_, key := r.Header["Idempotency-Key"]
	_, xKey := r.Header["X-Idempotency-Key"]
	return key || xKey
}

// defaultUserAgent is the User-Agent of a request that has none, as in net/http.
const defaultUserAgent = "Go-http-client/1.1"

// separately are the fields that write does not copy from the header of a request.
var separately = map[string]bool{
	"Host":           true,
	"User-Agent":     true,
	"Content-Length": true,
}

// write writes r to b as net/http does, and closes its body. It reports whether it
// has added Accept-Encoding: gzip. The answer must then be uncompressed for the
// caller of [Client.RoundTrip].
func write(b *bytes.Buffer, r *http.Request) (unzip bool, err error) {
	defer closeBody(r)
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	writeStrings(b, method, " ", r.URL.RequestURI(), " HTTP/1.1\r\nHost: ")
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	writeStrings(b, host, "\r\n")
	userAgent := defaultUserAgent
	if _, ok := r.Header["User-Agent"]; ok {
		userAgent = textproto.TrimString(r.Header.Get("User-Agent"))
	}
	if userAgent != "" {
		writeStrings(b, "User-Agent: ", userAgent, "\r\n")
	}
	if r.ContentLength > 0 || method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch {
		b.WriteString("Content-Length: ")
		b.Write(strconv.AppendInt(b.AvailableBuffer(), r.ContentLength, 10))
		b.WriteString("\r\n")
	}
	if err := r.Header.WriteSubset(b, separately); err != nil {
		return false, err
	}
	// Not with Range: a part of a compressed file cannot be uncompressed.
	unzip = method != http.MethodHead && r.Header.Get("Accept-Encoding") == "" && r.Header.Get("Range") == ""
	if unzip {
		b.WriteString("Accept-Encoding: gzip\r\n")
	}
	b.WriteString("\r\n")
	return unzip, writeBody(b, r)
}

func writeStrings(b *bytes.Buffer, all ...string) {
	for _, s := range all {
		b.WriteString(s)
	}
}

// writeBody writes the body of r to b. An error is returned if its length is not
// r.ContentLength.
func writeBody(b *bytes.Buffer, r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	want := int(r.ContentLength)
	b.Grow(want + 1)
	body, length := b.AvailableBuffer()[:want+1], 0
	for length <= want {
		n, err := r.Body.Read(body[length:])
		length += n
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if length > want {
		rest, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			return err
		}
		length += int(rest)
	}
	if length != want {
		return fmt.Errorf("http: ContentLength=%d with Body length %d", want, length)
	}
	b.Write(body[:want])
	return nil
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}
