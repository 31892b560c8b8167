package charset

import (
	"strings"
	"testing"
)

// TestDecode reads texts with and without marks and declarations.
func TestDecode(t *testing.T) {
	const guessed = "guessed"
	for _, test := range []struct{ name, in, declared, want, doubt string }{
		{"UTF-8", "größer", "", "größer", ""},
		{"ASCII", "larger", "us-ascii", "larger", ""},
		{"UTF-8 with a mark", "\xEF\xBB\xBFgrößer", "", "größer", ""},
		{"a mark, though another charset is declared", "\xEF\xBB\xBFgrößer", "iso-8859-1", "größer", ""},
		{"a mark alone", "\xEF\xBB\xBF", "", "", ""},
		{"nothing", "", "x-none", "", ""},
		{"UTF-16LE with a mark", "\xFF\xFEo\x00\xE4\x00", "", "oä", ""},
		{"UTF-16BE with a mark", "\xFE\xFF\x00o\x00\xE4", "utf-8", "oä", ""},
		{"UTF-32LE with a mark", "\xFF\xFE\x00\x00\xE4\x00\x00\x00", "", "ä", ""},
		{"UTF-32BE with a mark", "\x00\x00\xFE\xFF\x00\x00\x00\xE4", "", "ä", ""},
		{"UTF-16LE without a mark", "{\x00}\x00\xE4\x00", "", "{}ä", ""},
		{"UTF-16BE without a mark", "\x00o\x00k\x00\xE4", "", "okä", ""},
		{"UTF-16LE, declared", "\xE4\x00o\x00", "utf-16le", "äo", ""},
		{"UTF-16 without a mark, declared", "o\x00k\x00", "utf-16", "ok", ""},
		{"UTF-8, declared as UTF-16", "größer, larger", "utf-16", "größer, larger", ""},
		{"UTF-8 with an odd length, declared as UTF-32LE", "größer!", "utf-32le", "größer!", ""},
		{"Chinese in UTF-16LE, declared", "\xC1\x78\xD8\x76\xF2\x5D\x61\x53\xC1\x78\xD8\x76", "utf-16le", "磁盘已卡磁盘", ""},
		{"half of a character of UTF-16", "\xFF\xFEo\x00\xE4", "", "o\uFFFD", ""},
		{"Latin-1", "gr\xF6\xDFer", "", "größer", guessed},
		{"Windows-1252", "5 \x80", "", "5 €", guessed},
		{"Latin-1, declared", "gr\xF6\xDFer", "ISO-8859-1", "größer", ""},
		{"Latin-1, declared as UTF-8", "gr\xF6\xDFer", "utf-8", "größer", guessed},
		{"Latin-1 with two bytes that are also a character of UTF-8", "\xABCAF\xC9\xBB", "", "«CAFÉ»", guessed},
		{"UTF-8 that was cut", "\xA4 größer, größer\xC3", "", "¤ größer, größerÃ", guessed},
		{"ISO 8859-2, declared", "\xB3", "latin2", "ł", ""},
		{"Shift JIS, declared", "\x93\xFA", "Shift_JIS", "日", ""},
		{"an unknown charset", "a \xE4\xF6", "x-none", "a äö", "x-none"},
		{"an unknown charset of UTF-8 that was cut", "größer, größer\xC3", "x-none", "größer, größerÃ", "x-none"},
		{"an unknown charset of UTF-16", "o\x00k\x00\xE4\x00", "x-none", "okä", ""},
		{"an unknown charset that shifts", "a \x1b$)C\x0e0!", "x-none", "a \x1b$)C\x0e0!", "x-none"},
		{"an unknown charset of a text in UTF-8", "größer", "x-none", "größer", ""},
		{"a long name of a charset", "\xE4", strings.Repeat("x", 99), "ä", strings.Repeat("x", maxName)},
	} {
		got, d := DecodeString(test.in, test.declared)
		doubt := d.Unknown
		if d.Guessed && doubt == "" {
			doubt = guessed
		}
		if got != test.want || doubt != test.doubt || d.Any() != (d.String() != "") {
			t.Errorf("%s: got %q, doubt %q; want %q, %q", test.name, got, doubt, test.want, test.doubt)
		}
	}
}

// TestDecodeCopiesNothing checks that a text in UTF-8 costs nothing.
func TestDecodeCopiesNothing(t *testing.T) {
	text := []byte(strings.Repeat("größer ", 100))
	if n := testing.AllocsPerRun(10, func() { _, _ = Decode(text, "utf-8") }); n > 2 {
		t.Errorf("%v allocations", n)
	}
}

// TestDecodeHeader reads headers and names of files.
func TestDecodeHeader(t *testing.T) {
	for in, want := range map[string]string{
		"größer":                                             "größer",
		"gr\xF6\xDFer":                                       "größer",
		"=?UTF-8?Q?gr=C3=B6=C3=9Fer?=":                       "größer",
		"=?utf-8?b?Z3LDtsOfZXI=?= x":                         "größer x",
		"=?iso-8859-1?Q?5_=80?=":                             "5 €",
		"=?ISO-8859-1*de?Q?gr=F6=DFer?=":                     "größer",
		"=?us-ascii?Q?gr=C3=B6=C3=9Fer?=":                    "größer",
		"=?us-ascii?Q?gr=F6=DFer?=":                          "größer",
		"=?utf-8?Q?gr=F6=DFer?=":                             "größer",
		"=?koi8-r?B?xMHUwQ==?=":                              "дата",
		"=?x-none?Q?=E4a?=":                                  "äa",
		"=?utf-8?B?Z3LDtsOfZXI?= =?utf-8?B?Z3LD tsOf*ZXI=?=": "größergrößer",
		"=?utf-8?B?Z3LDtg==w59lcg==?=":                       "größer",
		"=?iso-8859-1?Q?gr\xF6=ZZ_=3D=?=":                    "grö=ZZ ==",
		"=?utf-8?Q?größer?=":                                 "größer",
		"=?UTF-8?Q?not closed":                               "=?UTF-8?Q?not closed",
		"=?UTF-8?Q?a?= =?iso-8859-1?Q?=E4?=":                 "aä",
	} {
		if got, _ := DecodeHeader(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// TestDeclared finds the charset in headers and in HTML.
func TestDeclared(t *testing.T) {
	for in, want := range map[string]string{
		"text/plain":                         "",
		"":                                   "",
		"text/plain; charset=iso-8859-1":     "iso-8859-1",
		`text/plain;charset="UTF-16LE"; x=y`: "UTF-16LE",
		"text/plain; format=flowed; Charset = koi8": "koi8",
		"application/json, charset='latin1'":        "latin1",
		"text/plain charset=big5;":                  "big5",
		"text/plain; mycharset=big5":                "",
	} {
		if got := OfType(in); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{
		`<html><head><meta charset="windows-1251">`:                                               "windows-1251",
		`<META http-equiv=Content-Type content="text/html; charset=iso-8859-2">`:                  "iso-8859-2",
		`<meta name=x content=y><p>charset=big5`:                                                  "",
		strings.Repeat(" ", 1024) + `<meta charset="windows-1251">`:                               "",
		`<meta name="viewport" content="width=device-width"><meta charset=gbk><meta charset=koi>`: "gbk",
	} {
		if got := OfHTML(in); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

// TestOfXML finds the charset in XML.
func TestOfXML(t *testing.T) {
	for in, want := range map[string]string{
		`<?xml version="1.0" encoding="ISO-8859-1"?><a/>`: "ISO-8859-1",
		`<?xml version='1.0' encoding='utf-8'?>`:          "utf-8",
		`<?xml version="1.0" encoding="utf-16"?>`:         "",
		`<?xml version="1.0"?><a encoding="big5"/>`:       "",
		`<a/>`: "",
	} {
		if got := OfXML([]byte(in)); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

// TestIsText tells texts from files.
func TestIsText(t *testing.T) {
	for in, want := range map[string]bool{
		"größer":                           true,
		"gr\xF6\xDFer\r\n":                 true,
		"\xFF\xFEo\x00k\x00":               true,
		"o\x00k\x00":                       true,
		"\xFF\xD8\xFF\xE0\x00\x10JFIF\x00": false,
		"\x89PNG\r\n\x1A\n":                false,
		"GIF89a\xE4":                       false,
		"%PDF-1.7\n\xE4\xE3":               false,
		"\x1F\x8B\x08\x00":                 false,
		"PK\x03\x04\xE4":                   false,
		"text\xE4" + strings.Repeat("a", 600) + "\x00": false,
	} {
		if got := IsText([]byte(in), ""); got != want {
			t.Errorf("%.20q: got %v, want %v", in, got, want)
		}
	}
}
