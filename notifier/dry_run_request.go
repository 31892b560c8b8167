package notifier

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/internal/percent"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/redact"
)

const (
	maxShownBody = 1 << 20 // bytes of a body
	maxShownText = 4 << 10 // bytes of a text
)

// show returns an HTTP request of the destination as text for people. It masks
// the secrets of the URL, in any encoding, and the fields with credentials.
func (d *Destination) show(r *http.Request) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", r.Method, d.maskAddress(r.URL))
	if r.Host != "" && r.Host != r.URL.Host {
		fmt.Fprintf(&b, "Host: %s\n", d.maskText(r.Host))
	}
	kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		for _, v := range r.Header[name] {
			fmt.Fprintf(&b, "%s: %s\n", name, d.maskHeader(name, v))
		}
	}
	if r.Body == nil {
		return b.String(), nil
	}
	defer r.Body.Close()
	var body bytes.Buffer
	n, err := io.CopyN(&body, r.Body, maxShownBody)
	if err != nil && err != io.EOF {
		return "", err
	}
	more, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return "", err
	}
	if n > 0 {
		b.WriteString("\n" + d.maskBody(kind, params["boundary"], body.Bytes(), n+more) + "\n")
	}
	return b.String(), nil
}

// maskText masks the secrets in a text.
func (d *Destination) maskText(s string) string {
	if s == "" {
		return s
	}
	// A secret that is too short to search for is masked only if it is the
	// whole text.
	if slices.Contains(d.secrets(), s) {
		return redact.Mask
	}
	return encoded.ReplaceAllStringFunc(d.redact(s), func(word string) string {
		if d.isDigest(word) {
			return redact.Mask
		}
		plain, err := base64.RawStdEncoding.DecodeString(standardBase64.Replace(word))
		if err != nil || !utf8.Valid(plain) || d.redact(string(plain)) == string(plain) {
			return word
		}
		return redact.Mask
	})
}

// isDigest reports whether a word is the hexadecimal digest of a secret. Some
// services sign in with that instead of the secret.
func (d *Destination) isDigest(word string) bool {
	switch len(word) {
	case 2 * md5.Size, 2 * sha1.Size, 2 * sha256.Size:
	default:
		return false
	}
	for _, secret := range d.secrets() {
		m, s, s2 := md5.Sum([]byte(secret)), sha1.Sum([]byte(secret)), sha256.Sum256([]byte(secret))
		for _, sum := range [][]byte{m[:], s[:], s2[:]} {
			if strings.EqualFold(word, hex.EncodeToString(sum)) {
				return true
			}
		}
	}
	return false
}

var (
	// encoded matches what can be base64 of a text with a secret in it, such as
	// a name and a password.
	encoded        = lazyregexp.New(`[A-Za-z0-9+/_-]{8,}={0,2}`)
	standardBase64 = strings.NewReplacer("-", "+", "_", "/", "=", "")
)

// maskAddress returns u with its secrets masked.
func (d *Destination) maskAddress(u *url.URL) string {
	var b strings.Builder
	b.WriteString(u.Scheme + "://")
	if u.User != nil {
		b.WriteString(redact.Mask + "@")
	}
	b.WriteString(d.maskText(u.Host))
	for i, segment := range strings.Split(u.EscapedPath(), "/") {
		if i > 0 {
			b.WriteByte('/')
		}
		plain := percent.DecodeText(segment)
		if masked := d.maskText(plain); masked != plain {
			segment = url.PathEscape(masked)
		}
		b.WriteString(segment)
	}
	if u.RawQuery != "" {
		b.WriteString("?" + d.maskForm(u.RawQuery))
	}
	return d.redact(b.String())
}

// maskForm masks the secrets in a query or a form.
func (d *Destination) maskForm(s string) string {
	pairs := strings.Split(s, "&")
	for i, pair := range pairs {
		key, value, has := strings.Cut(pair, "=")
		for _, part := range []*string{&key, &value} {
			plain, err := url.QueryUnescape(*part)
			if err != nil {
				plain = *part
			}
			if masked := d.maskText(plain); masked != plain {
				*part = url.QueryEscape(masked)
			}
		}
		if signature.MatchString(key) {
			value = redact.Mask
		}
		if pairs[i] = key; has {
			pairs[i] += "=" + value
		}
	}
	return strings.Join(pairs, "&")
}

// proofs matches the names of fields with a signature. Until it expires, a
// signature can be used like the secret that it is made with.
const proofs = `(?:sign|sig|signature|x-amz-signature|[a-z_]*assertion|[a-z_]*hash|pass(?:word|wd)?[a-z0-9_]*)`

var (
	signature    = lazyregexp.New(`(?i)^` + proofs + `$`)
	signsIn      = lazyregexp.New(`(?i)auth|token|key|secret|cookie|sign|password|credential`)
	harmlessKeys = []string{"Idempotency-Key"}
)

// maskHeader returns the value of a header field with its secrets masked.
func (d *Destination) maskHeader(name, value string) string {
	if !signsIn.MatchString(name) || slices.Contains(harmlessKeys, name) || value == "" {
		return d.maskText(value)
	}
	if scheme, _, ok := strings.Cut(value, " "); ok && strings.HasSuffix(name, "Authorization") {
		return scheme + " " + redact.Mask
	}
	return redact.Mask
}

// maskBody returns the beginning of a body of size bytes as text, with its
// secrets masked.
func (d *Destination) maskBody(kind, boundary string, body []byte, size int64) string {
	whole := size == int64(len(body))
	switch {
	case kind == "application/x-www-form-urlencoded" && whole:
		return cut(d.maskForm(string(body)))
	case boundary != "" && whole:
		if s, ok := d.maskParts(boundary, body); ok {
			return s
		}
	case whole && json.Valid(body):
		return d.maskJSON(body)
	}
	if !utf8.Valid(body) || bytes.ContainsFunc(body, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }) {
		return fmt.Sprintf("(%d bytes)", size)
	}
	return cut(d.maskText(string(body)))
}

var (
	jsonText      = lazyregexp.New(`"(?:[^"\\]|\\.)*"`)
	jsonSignature = lazyregexp.New(`(?i)("` + proofs + `":\s*)"(?:[^"\\]|\\.)*"`)
)

// maskJSON masks the secrets in the texts of a JSON document and keeps the order
// of its fields.
func (d *Destination) maskJSON(doc []byte) string {
	doc = jsonText.ReplaceAllFunc(doc, func(quoted []byte) []byte {
		var plain string
		if json.Unmarshal(quoted, &plain) != nil {
			return quoted
		}
		masked := d.maskText(plain)
		if len(masked) > maxShownText || len(masked) > 200 && encoded.FindString(masked) == masked {
			masked = cutAt(masked, 100)
		}
		if masked == plain {
			return quoted
		}
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if enc.Encode(masked) != nil {
			return []byte(`"` + redact.Mask + `"`)
		}
		return bytes.TrimRight(b.Bytes(), "\n")
	})
	doc = jsonSignature.ReplaceAll(doc, []byte(`${1}"`+redact.Mask+`"`))
	var out bytes.Buffer
	if json.Indent(&out, doc, "", "  ") != nil {
		return redact.Mask
	}
	return out.String()
}

// maskParts masks the secrets in each part of a multipart body and leaves out
// the contents of files. It reports false if the body is malformed.
func (d *Destination) maskParts(boundary string, body []byte) (string, bool) {
	var b strings.Builder
	for r := multipart.NewReader(bytes.NewReader(body), boundary); ; {
		part, err := r.NextRawPart()
		if err == io.EOF {
			return b.String() + "--" + boundary + "--", true
		}
		if err != nil {
			return "", false
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return "", false
		}
		b.WriteString("--" + boundary + "\n")
		for _, name := range slices.Sorted(maps.Keys(part.Header)) {
			for _, v := range part.Header[name] {
				fmt.Fprintf(&b, "%s: %s\n", name, d.maskHeader(name, v))
			}
		}
		if part.FileName() != "" {
			fmt.Fprintf(&b, "\n(%d bytes)\n", len(content))
			continue
		}
		kind, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
		b.WriteString("\n" + d.maskBody(kind, "", content, int64(len(content))) + "\n")
	}
}

// cut shortens a text to maxShownText.
func cut(s string) string { return cutAt(s, maxShownText) }

// cutAt returns s, or its first n bytes and the number of the others.
func cutAt(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return fmt.Sprintf("%s (%d bytes more)", markup.TruncateBytes(s, n), len(s)-n)
}
