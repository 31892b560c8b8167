// Package charset reads bytes as text, for everything that comes in: bodies, headers,
// fields of forms, mails, and signals.
//
// What a text is in is found in this order: its byte order mark, the charset that the
// sender declares, UTF-8, and Windows-1252, which most programs send if they declare
// nothing. A charset that is unknown is as if undeclared. No text is refused for its bytes.
//
//	text, doubt := charset.Decode(body, charset.OfType(r.Header.Get("Content-Type")))
//	if doubt.Any() {
//		warn(doubt.String())
//	}
//
// A signature is one of the bytes, so it is checked before.
package charset

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/internal/percent"
)

// Doubt says why a text may not be what its sender wrote. The zero value is no doubt.
type Doubt struct {
	Guessed bool   // bytes that are not UTF-8 were read as Windows-1252
	Unknown string // the charset that is declared but unknown, so that the text was read without it; "" if there is none
}

// Any reports whether there is a doubt.
func (d Doubt) Any() bool { return d != Doubt{} }

// Or returns d, or o if there is no doubt in d.
func (d Doubt) Or(o Doubt) Doubt {
	if d.Any() {
		return d
	}
	return o
}

// String returns a sentence for a warning, or "" if there is no doubt.
func (d Doubt) String() string {
	switch {
	case d.Unknown != "":
		return fmt.Sprintf("The charset %q is unknown, so what is not UTF-8 is read as Windows-1252; send UTF-8", d.Unknown)
	case d.Guessed:
		return "The text is not UTF-8, so it is read as Windows-1252; send UTF-8, or name the charset in Content-Type"
	}
	return ""
}

// maxName bounds the name of an unknown charset, in bytes.
const maxName = 40

// Decode returns b, a text in the charset that its sender has declared, as UTF-8 without a byte
// order mark. declared may be "". If nothing is to change, the result is b itself.
func Decode(b []byte, declared string) ([]byte, Doubt) {
	if c, size := mark(b); c != nil {
		return decode(b[size:], c)
	}
	c, known := undeclared, true
	if declared != "" {
		if c = findCharset(declared); c == nil {
			c, known = undeclared, false
		}
	}
	if wide := unmarked(b); wide != nil && (c == undeclared || c == charsets()["utf16"]) {
		c = wide
	} else if c != undeclared && isWide(c) && isPlain(b) { // only the declaration is in UTF-16
		c = undeclared
	}
	text, d := decode(b, c)
	if !known && (d.Guessed || bytes.ContainsAny(b, shifts)) {
		d.Unknown = cutName(declared)
	}
	return text, d
}

// shifts are the characters that shift to another character set (ISO 2022). A text with them is
// not ASCII, although its bytes are.
const shifts = "\x0e\x1b"

// cutName returns the name of an unknown charset for a warning.
func cutName(name string) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "")
	}
	return name
}

// DecodeString is [Decode] of a string.
func DecodeString(s, declared string) (string, Doubt) {
	b, d := Decode(unsafe.Slice(unsafe.StringData(s), len(s)), declared) //nolint:gosec // Decode does not change b
	if len(b) == len(s) && (len(b) == 0 || unsafe.SliceData(b) == unsafe.StringData(s)) {
		return s, d
	}
	return string(b), d
}

// DecodeHeader returns the text of a header or of a file name in one, which may hold encoded
// words in any charset (RFC 2047).
func DecodeHeader(s string) (string, Doubt) {
	var doubt Doubt
	words := mime.WordDecoder{CharsetReader: func(declared string, r io.Reader) (io.Reader, error) {
		b, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		b, d := Decode(b, declared)
		doubt = doubt.Or(d)
		return bytes.NewReader(b), nil
	}}
	s = encodedWord.ReplaceAllStringFunc(s, repairWord)
	// Package mime decodes words of these charsets itself, and loses bytes that they do not have.
	s = strict.ReplaceAllString(s, "=?unknown-8bit?")
	if decoded, err := words.DecodeHeader(latin1.ReplaceAllString(s, "=?cp1252?")); err == nil {
		s = decoded
	}
	s, d := DecodeString(s, "")
	return s, doubt.Or(d)
}

var (
	strict = lazyregexp.New(`(?i)=\?us-ascii(\*[a-z-]*)?\?`)
	latin1 = lazyregexp.New(`(?i)=\?iso-8859-1(\*[a-z-]*)?\?`)
)

// encodedWord matches an encoded word: the charset, the encoding and the text.
var encodedWord = lazyregexp.New(`=\?([^?\s]+)\?([BbQq])\?([^?]*)\?=`)

// repairWord returns an encoded word as RFC 2047 has it: base64 with its padding and without
// what is not of the alphabet, and quoted-printable without bare signs.
func repairWord(word string) string {
	m := encodedWord.FindStringSubmatch(word)
	var text string
	if strings.EqualFold(m[2], "b") {
		if _, err := base64.StdEncoding.DecodeString(m[3]); err == nil {
			return word
		}
		var b []byte
		for piece := range strings.SplitSeq(m[3], "=") {
			piece = notBase64.ReplaceAllString(piece, "")
			if len(piece)%4 == 1 {
				piece = piece[:len(piece)-1]
			}
			decoded, _ := base64.RawStdEncoding.DecodeString(piece) // it has nothing else
			b = append(b, decoded...)
		}
		text = base64.StdEncoding.EncodeToString(b)
	} else {
		text = bareSign.ReplaceAllStringFunc(m[3], func(s string) string {
			if s[0] == '=' && len(s) > 1 {
				return s
			}
			return strings.ReplaceAll(fmt.Sprintf("% X", "="+s), " ", "=")[len("3D"):]
		})
	}
	return "=?" + m[1] + "?" + m[2] + "?" + text + "?="
}

var (
	notBase64 = lazyregexp.New(`[^A-Za-z0-9+/]+`)
	bareSign  = lazyregexp.New(`=[0-9A-Fa-f]{2}|=|[^ -~\t]`)
)

// OfType returns the charset that a header Content-Type declares, or "". It reads headers with
// mistakes in other places, too.
func OfType(contentType string) string {
	if !strings.ContainsAny(contentType, "; \t\n\f\r") { // no parameter
		return ""
	}
	if m := parameter.FindStringSubmatch(contentType); m != nil {
		return m[1]
	}
	return ""
}

var parameter = lazyregexp.New(`(?i)[;\s]charset\s*=\s*["']?([^\s"';,]+)`)

// OfHTML returns the charset that an HTML text declares in its first 1024 bytes, or "".
func OfHTML[T string | []byte](text T) string {
	return found(meta.FindStringSubmatch(string(text[:min(len(text), 1024)])))
}

var meta = lazyregexp.New(`(?i)<meta\s[^>]*charset\s*=\s*["']?([^\s"'/>;]+)`)

// OfXML returns the charset that the declaration of an XML text names, or "".
func OfXML(text []byte) string {
	return found(declaration.FindStringSubmatch(string(text[:min(len(text), 128)])))
}

// found returns the charset that a text declares of itself, or "". Where the declaration can be
// read, the text is not in UTF-16, even if it says so.
func found(match []string) string {
	if match == nil || IsWide(nil, match[1]) {
		return ""
	}
	return match[1]
}

var declaration = lazyregexp.New(`^\s*<\?xml\s[^>]*encoding\s*=\s*["']([^"']+)`)

// IsText reports whether b, which its sender declares to be in a charset or leaves undeclared,
// is a text and not a file.
func IsText(b []byte, declared string) bool {
	if utf8.Valid(b) {
		return true
	}
	isText := func(b []byte) bool { return strings.HasPrefix(http.DetectContentType(b), "text/") }
	text, _ := Decode(b, declared)
	return (isText(b) || IsWide(b, declared)) && isText(text) && bytes.IndexByte(text, 0) < 0
}

// IsWide reports whether each character of a text in a charset has several bytes, or the text a
// mark, so that not even its ASCII is found before it is decoded.
func IsWide(b []byte, declared string) bool {
	if c, _ := mark(b); c != nil {
		return true
	}
	return isWide(findCharset(declared)) && !isPlain(b) || unmarked(b) != nil
}

// isWide reports whether each character of a charset has several bytes.
func isWide(c charset) bool {
	switch c {
	case charsets()["utf16"], charsets()["utf16be"], charsets()["utf16le"], charsets()["utf32"], charsets()["utf32be"], charsets()["utf32le"]:
		return true
	}
	return false
}

// minPlain is the length in bytes from which a text in UTF-16 is hardly UTF-8 without control
// characters by chance.
const minPlain = 12

// isPlain reports whether b is UTF-8 whatever its sender declares: it has no control characters,
// which UTF-16 and UTF-32 have as halves of the characters of ASCII.
func isPlain(b []byte) bool {
	return (len(b) >= minPlain || len(b)%2 == 1) && utf8.Valid(b) &&
		!bytes.ContainsFunc(b, func(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' })
}

// mark returns the charset that the byte order mark of b names, and the size of the mark, or nil.
// A mark of UTF-8 names [undeclared].
func mark(b []byte) (c charset, size int) {
	for _, m := range marks {
		if bytes.HasPrefix(b, []byte(m.mark)) {
			return m.charset, len(m.mark)
		}
	}
	return nil, 0
}

var (
	utf16BE = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	utf16LE = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
)

// marks are the byte order marks. The mark of UTF-32 begins like the mark of UTF-16.
var marks = []struct {
	mark    string
	charset charset
}{
	{"\xEF\xBB\xBF", undeclared},
	{"\xFF\xFE\x00\x00", utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)},
	{"\x00\x00\xFE\xFF", utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)},
	{"\xFF\xFE", utf16LE},
	{"\xFE\xFF", utf16BE},
}

// unmarked returns the charset of a text in UTF-16 without a mark, which begins with characters
// of ASCII (RFC 4627, section 3), or nil. Programs of Windows send it.
func unmarked(b []byte) charset {
	if len(b) < 4 {
		return nil
	}
	switch isASCII := func(c byte) bool { return c != 0 && c < utf8.RuneSelf }; {
	case isASCII(b[0]) && b[1] == 0 && b[2] != 0 && b[3] == 0:
		return utf16LE
	case b[0] == 0 && isASCII(b[1]) && b[2] == 0 && b[3] != 0:
		return utf16BE
	}
	return nil
}

// decode returns a text in a charset, without a mark, as UTF-8.
func decode(b []byte, c charset) ([]byte, Doubt) {
	if c == undeclared {
		return guess(b)
	}
	decoded, err := c.NewDecoder().Bytes(b)
	if err != nil {
		return guess(b)
	}
	return decoded, Doubt{}
}

// guess returns b as UTF-8. A text that is not UTF-8 is in Windows-1252. One with more
// characters of UTF-8 than bytes that belong to none is a text in UTF-8 that was cut, or has
// lines in another charset: then only those bytes are in Windows-1252.
func guess(b []byte) ([]byte, Doubt) {
	valid, invalid := count(b)
	if invalid == 0 {
		return b, Doubt{}
	}
	out := make([]byte, 0, len(b)+len(b)/8+8)
	for i := 0; i < len(b); {
		size := 1
		if valid > invalid {
			if r, n := utf8.DecodeRune(b[i:]); r != utf8.RuneError || n > 1 {
				size = n
			}
		}
		if size > 1 {
			out = append(out, b[i:i+size]...)
		} else {
			out = utf8.AppendRune(out, charmap.Windows1252.DecodeByte(b[i]))
		}
		i += size
	}
	return out, Doubt{Guessed: true}
}

// count counts the characters of UTF-8 beyond ASCII in b, and the bytes that belong to none.
func count(b []byte) (valid, invalid int) {
	if utf8.Valid(b) {
		return 0, 0
	}
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1:
			invalid++
		case n > 1:
			valid++
		}
		b = b[n:]
	}
	return valid, invalid
}

// charset makes decoders of texts in a charset.
type charset interface{ NewDecoder() *encoding.Decoder }

// findCharset returns the charset with a name as programs write it, or nil if it is
// unknown. Texts in undeclared are read as UTF-8, or by [guess].
func findCharset(name string) charset {
	key := charsetKey(name)
	if c := charsets()[key]; c != nil {
		return c
	}
	switch {
	case strings.HasPrefix(key, "iso2022jp"): // with more character sets, which are rare
		return japanese.ISO2022JP
	case strings.HasPrefix(key, "x"):
		return charsets()[key[1:]]
	}
	return nil
}

// undeclared is the charset of texts that are ASCII, or whose sender does not know
// their charset. Programs that call a text ASCII often send another one.
var undeclared charset = encoding.Nop

// charsets returns the charsets of golang.org/x/text, and UTF-7, by [charsetKey]. Where a name
// means different things to different programs, it means what it does in the WHATWG Encoding
// Standard.
var charsets = sync.OnceValue(func() map[string]charset {
	all := map[string]charset{"utf7": utf7{}, "unicode11utf7": utf7{}}
	for _, e := range charmap.All {
		if named, ok := e.(fmt.Stringer); ok {
			all[charsetKey(charmapName.Replace(named.String()))] = e
		}
	}
	for _, names := range []struct {
		charset charset
		names   string
	}{
		{undeclared, "usascii ascii ansix341968 iso646us us 646 unknown8bit unknown utf8 unicode11utf8 unicode20utf8 utf8mb4 cp65001"},
		{unicode.UTF16(unicode.BigEndian, unicode.UseBOM), "utf16 ucs2 iso10646ucs2 unicode"},
		{unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), "utf16be"},
		{unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "utf16le"},
		{utf32.UTF32(utf32.BigEndian, utf32.UseBOM), "utf32 ucs4 iso10646ucs4"},
		{utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), "utf32be"},
		{utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), "utf32le"},

		{charmap.Windows1252, "iso88591 latin1 l1 isolatin1 isoir100 ibm819 ansix31101983"},
		{charmap.ISO8859_2, "latin2 l2 isolatin2 isoir101"},
		{charmap.ISO8859_3, "latin3 l3 isolatin3 isoir109"},
		{charmap.ISO8859_4, "latin4 l4 isolatin4 isoir110"},
		{charmap.ISO8859_5, "cyrillic isolatincyrillic isoir144"},
		{charmap.ISO8859_6, "arabic isolatinarabic asmo708 ecma114 isoir127"},
		{charmap.ISO8859_7, "greek greek8 isolatingreek elot928 ecma118 isoir126"},
		{charmap.ISO8859_8, "hebrew isolatinhebrew visual isoir138"},
		{charmap.Windows1254, "iso88599 latin5 l5 isolatin5 isoir148"},
		{charmap.ISO8859_8I, "logical"},
		{charmap.ISO8859_10, "latin6 l6 isolatin6 isoir157"},
		{charmap.ISO8859_15, "latin9 l9 isolatin9"},
		{charmap.Windows874, "tis620 iso885911 ibm874 dos874"},
		{charmap.KOI8R, "koi8 koi"},
		{charmap.KOI8U, "koi8ru"},
		{charmap.CodePage858, "ibm858 ibm00858"},
		{charmap.CodePage866, "866"},
		{charmap.Macintosh, "mac macroman"},
		{charmap.MacintoshCyrillic, "maccyrillic macukrainian"},

		{japanese.ISO2022JP, "jis"},
		{japanese.ShiftJIS, "shiftjis sjis windows31j mskanji ms932 ibm932 windows932"},
		{japanese.EUCJP, "eucjp eucpkdfmtjapanese"},
		{simplifiedchinese.GBK, "gb2312 gb231280 iso58gb231280 isoir58 chinese gbk euccn ms936 ibm936 windows936"},
		{simplifiedchinese.GB18030, "gb18030"},
		{simplifiedchinese.HZGB2312, "hzgb2312 hz"},
		{traditionalchinese.Big5, "big5 cnbig5 big5hkscs big5eten ms950 ibm950 windows950"},
		{korean.EUCKR, "euckr ksc5601 ksc56011987 ksc56011989 ksc56011992 isoir149 korean uhc ms949 ibm949 windows949"},
	} {
		for name := range strings.FieldsSeq(names.names) {
			all[charsetKey(name)] = names.charset
		}
	}
	return all
})

var charmapName = strings.NewReplacer("Code Page", "", " ", "")

// charsetKey returns the name of a charset without what varies in its spelling.
func charsetKey(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	if i := strings.IndexAny(name, " :*"); i > 0 { // a comment, the year of a standard, or a language
		name = name[:i]
	}
	key := strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_.()'\"=", r) {
			return -1
		}
		return r
	}, name)
	key = strings.TrimPrefix(key, "cs")
	if number, ok := strings.CutPrefix(strings.TrimPrefix(key, "x"), "cp"); ok {
		key = "ibm" + number
		if len(number) == 4 && strings.HasPrefix(number, "125") {
			key = "windows" + number
		}
	}
	return key
}

// Pair is a name and a value of a form or of a query string.
type Pair struct{ Name, Value string }

// ReadForm reads a form (application/x-www-form-urlencoded) or a query string as browsers do
// (WHATWG URL, section 5.1), and returns the pairs in order. Unlike [url.ParseQuery], it takes a
// semicolon, and a percent sign that begins no escape, as ordinary characters: curl -d
// "body=91% full; act now" sends that text. The names and values are in the charset that the
// field _charset_ names or that is declared. ok is false if there are more than max pairs.
func ReadForm(text []byte, declared string, max int) (pairs []Pair, d Doubt, ok bool) {
	wide := isWide(findCharset(declared))
	if IsWide(text, declared) {
		text, d = Decode(text, declared)
		wide = true
	}
	if wide { // the text was, or only its declaration is
		declared = ""
	}
	for part := range strings.SplitSeq(string(text), "&") {
		if part == "" {
			continue
		}
		if len(pairs) == max {
			return nil, d, false
		}
		name, value, _ := strings.Cut(part, "=")
		p := Pair{percent.DecodeForm(name), percent.DecodeForm(value)}
		if p.Name == CharsetField && p.Value != "" {
			declared = p.Value
		}
		pairs = append(pairs, p)
	}
	for i := range pairs {
		p := &pairs[i]
		var name, value Doubt
		p.Name, name = DecodeString(p.Name, declared)
		p.Value, value = DecodeString(p.Value, declared)
		d = d.Or(name).Or(value)
	}
	return pairs, d, true
}

// CharsetField is the field in which a form says what its charset is (RFC 7578, section 4.6).
const CharsetField = "_charset_"

// ParseQuery returns the parameters of a query string as [ReadForm] reads them.
func ParseQuery(query string) (url.Values, Doubt) {
	pairs, d, _ := ReadForm([]byte(query), "", len(query)+1)
	return Values(pairs), d
}

// Values returns the values of pairs by their names.
func Values(pairs []Pair) url.Values {
	values := url.Values{}
	for _, p := range pairs {
		values.Add(p.Name, p.Value)
	}
	return values
}
