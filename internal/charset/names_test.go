package charset

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/transform"
)

// TestCharsets compares the charsets with those that the WHATWG Encoding Standard
// and IANA's list have for the names in mails.
func TestCharsets(t *testing.T) {
	const whatwg = `866 cp866 csibm866 ibm866 csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2
		csisolatin3 iso-8859-3 iso-ir-109 l3 latin3 csisolatin4 iso-8859-4 iso-ir-110 l4 latin4
		csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 arabic asmo-708 csisolatinarabic ecma-114 iso-8859-6 iso-ir-127
		csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126
		csisolatinhebrew hebrew iso-8859-8 iso-ir-138 visual iso-8859-8-i logical
		csisolatin6 iso-8859-10 iso-ir-157 l6 latin6 iso-8859-13 iso-8859-14 csisolatin9 iso-8859-15 l9 iso-8859-16
		cskoi8r koi koi8 koi8-r koi8_r koi8-ru koi8-u csmacintosh mac macintosh x-mac-roman x-mac-cyrillic x-mac-ukrainian
		dos-874 iso-8859-11 tis-620 TIS-620 windows-874 cp1250 windows-1250 x-cp1250 cp1251 windows-1251 x-cp1251 cp1252 windows-1252 x-cp1252
		cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 iso_8859-1 iso_8859-1:1987 l1 latin1
		cp1253 windows-1253 cp1254 csisolatin5 iso-8859-9 iso-ir-148 l5 latin5 windows-1254 cp1255 windows-1255
		cp1256 windows-1256 cp1257 windows-1257
		cp1258 windows-1258 chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk gb18030 GB18030
		big5 Big5 big5-hkscs cn-big5 csbig5 cseucpkdfmtjapanese euc-jp x-euc-jp csiso2022jp iso-2022-jp
		csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987
		ks_c_5601-1989 ksc5601 ksc_5601 windows-949 utf-16be utf-16le x-user-defined`
	const iana = `IBM037 IBM437 cp437 IBM850 cp850 IBM852 IBM855 IBM00858 IBM860 ` +
		`IBM862 IBM863 IBM865 HZ-GB-2312 GBK CP936 MS936 windows-936 UTF-16 KOI7-switched`
	for names, find := range map[string]func(string) (encoding.Encoding, error){whatwg: htmlindex.Get, iana: ianaindex.MIME.Encoding} {
		for name := range strings.FieldsSeq(names) {
			want, err := find(name)
			if err != nil {
				t.Fatal(name, err)
			}
			if got := findCharset(name); got != want && (got != nil || want != nil) {
				t.Errorf("%s: got %v, want %v", name, got, want)
			}
		}
	}
	for name, want := range map[string]charset{
		"utf-8": undeclared, `"utf-8"`: undeclared, "us-ascii (Plain text)": undeclared, "ANSI_X3.4-1968": undeclared, "unknown-8bit": undeclared,
		"latin-1": charmap.Windows1252, "windows1252": charmap.Windows1252, "ISO8859_15": charmap.ISO8859_15, "cp950": traditionalchinese.Big5,
		"cp932": japanese.ShiftJIS, "CP949": korean.EUCKR, "iso-2022-jp-ms": japanese.ISO2022JP, "UTF-7": utf7{}, "unicode-1-1-utf-7": utf7{},
		"iso-2022-kr": nil, "x-none": nil, "x": nil, "": nil,
	} {
		if got := findCharset(name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}

// TestUTF7 decodes texts with a reader that returns a few bytes at a time, and
// texts with mistakes.
func TestUTF7(t *testing.T) {
	for in, want := range map[string]string{
		"Hi Mom -+Jjo--!":       "Hi Mom -☺-!",
		"A+ImIDkQ.":             "A≢Α.",
		"+2D3eAA-":              "😀",
		"1 +- 1":                "1 + 1",
		"+AOQ":                  "ä",
		"+AOQ-+AOQ-":            "ää",
		"+2D0-x":                "x",
		"+3gA-x":                "x",
		"+2D0AYQ-":              "\uFFFD",
		"+":                     "",
		"\xe4+!":                "\uFFFD!",
		strings.Repeat("a", 99): strings.Repeat("a", 99),
	} {
		got, err := io.ReadAll(transform.NewReader(iotest.OneByteReader(strings.NewReader(in)), utf7{}.NewDecoder()))
		if err != nil || string(got) != want {
			t.Errorf("%q: got %q, %v, want %q", in, got, err, want)
		}
	}
}
