package charset

import (
	"fmt"
	"strings"
	"sync"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

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
