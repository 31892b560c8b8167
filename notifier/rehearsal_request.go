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
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/internal/percent"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/redact"
)

const (
	shownBody = 1 << 20 // how much of a body is read
	shownText = 4 << 10 // how much of a text is shown
)

// show writes an HTTP request of the destination down for people to read,
// with its secrets masked: those of the URL, however they are encoded, and
// what the request signs in with.
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
	n, err := io.CopyN(&body, r.Body, shownBody)
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

// maskText masks the secrets of a text.
func (d *Destination) maskText(s string) string {
	if s == "" {
		return s
	}
	// One that is too short to be looked for within texts still is one as a whole.
	if slices.Contains(d.schema.secrets(), s) {
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

// isDigest says whether a word is the hexadecimal digest of a secret, which
// some services sign in with in place of the secret.
func (d *Destination) isDigest(word string) bool {
	switch len(word) {
	case 2 * md5.Size, 2 * sha1.Size, 2 * sha256.Size:
	default:
		return false
	}
	for _, secret := range d.schema.secrets() {
		m, s, s2 := md5.Sum([]byte(secret)), sha1.Sum([]byte(secret)), sha256.Sum256([]byte(secret))
		for _, sum := range [][]byte{m[:], s[:], s2[:]} {
			if strings.EqualFold(word, hex.EncodeToString(sum)) {
				return true
			}
		}
	}
	return false
}

// encoded is what may be base64 of a secret among other things, such as a
// user's name and password.
var (
	encoded        = regexp.MustCompile(`[A-Za-z0-9+/_-]{8,}={0,2}`)
	standardBase64 = strings.NewReplacer("-", "+", "_", "/", "=", "")
)

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

// maskForm masks what is written as a query or a form.
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

// What proves that the sender knows a secret is as good as the secret for a
// while.
const proofs = `(?:sign|sig|signature|x-amz-signature|[a-z_]*assertion|[a-z_]*hash|pass(?:word|wd)?[a-z0-9_]*)`

var (
	signature    = regexp.MustCompile(`(?i)^` + proofs + `$`)
	signsIn      = regexp.MustCompile(`(?i)auth|token|key|secret|cookie|sign|password|credential`)
	harmlessKeys = []string{"Idempotency-Key"}
)

func (d *Destination) maskHeader(name, value string) string {
	if !signsIn.MatchString(name) || slices.Contains(harmlessKeys, name) || value == "" {
		return d.maskText(value)
	}
	if scheme, _, ok := strings.Cut(value, " "); ok && strings.HasSuffix(name, "Authorization") {
		return scheme + " " + redact.Mask
	}
	return redact.Mask
}

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
	jsonText      = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	jsonSignature = regexp.MustCompile(`(?i)("` + proofs + `":\s*)"(?:[^"\\]|\\.)*"`)
)

// maskJSON masks the texts of a JSON document and leaves the order of its
// fields.
func (d *Destination) maskJSON(doc []byte) string {
	doc = jsonText.ReplaceAllFunc(doc, func(quoted []byte) []byte {
		var plain string
		if json.Unmarshal(quoted, &plain) != nil {
			return quoted
		}
		masked := d.maskText(plain)
		if len(masked) > shownText || len(masked) > 200 && encoded.FindString(masked) == masked {
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

// maskParts masks a multipart body, part by part. The contents of files are
// left out.
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

// cut shortens a text that is longer than anybody reads.
func cut(s string) string { return cutAt(s, shownText) }

// cutAt returns s, or its first max bytes and the number of the others.
func cutAt(s string, max int) string {
	if len(s) <= max {
		return s
	}
	return fmt.Sprintf("%s (%d bytes more)", markup.TruncateBytes(s, max), len(s)-max)
}
