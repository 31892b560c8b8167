package mail

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/emersion/go-message"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
)

// The package charset of go-message also has Big5, whose tables take a quarter of
// a megabyte of the program.
func init() { message.CharsetReader = charsetReader }

// charsetReader returns a reader of the text in r as UTF-8.
func charsetReader(name string, r io.Reader) (io.Reader, error) {
	e := charsets()[charsetKey(name)]
	if e == nil {
		return nil, fmt.Errorf("unknown charset %q", name)
	}
	return e.NewDecoder().Reader(r), nil
}

// charsets returns the charsets by [charsetKey].
var charsets = sync.OnceValue(func() map[string]encoding.Encoding {
	all := map[string]encoding.Encoding{
		"utf8": encoding.Nop, "unicode11utf8": encoding.Nop,
		"utf16":   unicode.UTF16(unicode.BigEndian, unicode.UseBOM),
		"utf16be": unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM),
		"utf16le": unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM),

		"iso2022jp": japanese.ISO2022JP, "shiftjis": japanese.ShiftJIS, "sjis": japanese.ShiftJIS, "xsjis": japanese.ShiftJIS,
		"windows31j": japanese.ShiftJIS, "eucjp": japanese.EUCJP,
		"gb2312": simplifiedchinese.GBK, "gbk": simplifiedchinese.GBK, "gb18030": simplifiedchinese.GB18030, "hzgb2312": simplifiedchinese.HZGB2312,
		"euckr": korean.EUCKR, "ksc56011987": korean.EUCKR, "windows949": korean.EUCKR,
	}
	for _, e := range charmap.All {
		if named, ok := e.(fmt.Stringer); ok {
			all[charsetKey(strings.ReplaceAll(named.String(), "Code Page", ""))] = e
		}
	}
	// What programs call ISO 8859-1 or ASCII is Windows-1252 (WHATWG Encoding,
	// section 4.2).
	for _, name := range []string{"iso88591", "latin1", "ascii", "usascii", "ansix341968", "ansix31101983"} {
		all[name] = charmap.Windows1252
	}
	return all
})

// charsetKey returns the name of a charset without what varies in its spelling.
func charsetKey(name string) string {
	key := strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_ .:()", r) {
			return -1
		}
		return r
	}, strings.ToLower(name))
	if number, ok := strings.CutPrefix(key, "cp"); ok {
		key = "ibm" + number
		if len(number) == 4 && strings.HasPrefix(number, "125") {
			key = "windows" + number
		}
	}
	return strings.TrimPrefix(key, "cs")
}
