package mail

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

const jpeg = "\xFF\xD8\xFF\xE0\x00\x10JFIF\x00"

// TestMalformed reads mails with the mistakes of devices, and checks that no text is lost.
func TestMalformed(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte(jpeg))
	picture := "--b\nContent-Type: image/jpeg; name=a.jpg\nContent-Transfer-Encoding: base64\n\n" + encoded + "\n"
	const file = `file: "a.jpg" image/jpeg`
	multipart := "Subject: S\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"b\"\n"
	for name, test := range map[string]struct{ mail, want string }{
		"no empty line": {"Subject: S\nThe UPS is on battery.\nPlease look.\n", "S|The UPS is on battery.\nPlease look."},
		"no empty line before a text with one": {
			"Subject: S\nThe UPS is on battery.\n\nPlease look.\n",
			"S|The UPS is on battery.\n\nPlease look.",
		},
		"no empty line before names and values": {
			"From: ups@x\nSubject: S\nState: on battery\nTime: 12:00\n",
			"S|State: on battery\nTime: 12:00",
		},
		"a byte order mark":                {"\uFEFFSubject: S\n\nText\n", "S|Text"},
		"names and values alone":           {"State: on battery\nTime: 12:00\n", "|State: on battery\nTime: 12:00"},
		"an address without an empty line": {"Subject: S\nhttp://192.168.1.5/\n", "S|http://192.168.1.5/"},
		"a line that is no field":          {"Subject: S\n<<broken>>\nContent-Type: text/plain\n\nText\n", "S|<<broken>>\n\nText"},
		"a line that is no field before base64": {
			"Subject: S\n<<broken>>\nContent-Transfer-Encoding: base64\n\nVGV4dA==\n",
			"S|<<broken>>\n\nText",
		},
		"a line that is no field before a folded one": {
			"Subject: S\n<<broken>>\nContent-Type: multipart/mixed;\n boundary=b\n\n--b\n\nText\n--b--\n", "S|<<broken>>\n\nText",
		},
		"a boundary that differs": {multipart + "\n--other\nContent-Type: text/plain\n\nText\n" +
			strings.ReplaceAll(picture, "--b\n", "--other\n") + "--other--\n", "S|Text " + file},
		"a boundary that does not occur": {multipart + "\nText\nwithout parts\n", "S|Text\nwithout parts"},
		"no boundary declared": {"Subject: S\nContent-Type: multipart/mixed\n\n--b\nContent-Type: text/plain\n\nText\n" + picture +
			"--b--\n", "S|Text " + file},
		"a boundary with its hyphens": {"Subject: S\nContent-Type: multipart/mixed; boundary=--b\n\n--b\nContent-Type: " +
			"text/plain\n\nText\n--b--\n", "S|Text"},
		"only a text before the boundary": {multipart + "\nMotion at the door\n" + picture + "--b--\n", "S|Motion at the door " + file},
		"only a text after the boundary":  {multipart + "\n" + picture + "--b--\nMotion at the door\n", "S|Motion at the door " + file},
		"what is said of MIME": {
			multipart + "\nThis is a multi-part message in MIME format.\n" + picture + "--b--\n",
			"S| " + file,
		},
		"no parts but a text before them": {multipart + "\nText\n--b--\n", "S|Text"},
		"a part without a header":         {multipart + "\n--b\nText, not a header\n" + picture + "--b--\n", "S|Text, not a header " + file},
		"a part with a broken header": {
			multipart + "\n--b\nContent-Type text/plain\n\nText\n" + picture + "--b--\n",
			"S|Content-Type text/plain\n\nText " + file,
		},
		"a picture with a broken header": {multipart + "\n--b\n\nText\n--b\n<<>>\nContent-Transfer-Encoding: base64\n\n" + encoded +
			"\n--b--\n", "S|Text\n\n<<>> file: \"attachment.jpg\" application/octet-stream"},
		"a picture without a header": {
			multipart + "\n--b\n\nText\n--b\n\n" +
				base64.StdEncoding.EncodeToString([]byte(jpeg+strings.Repeat("x", 99))) + "\n--b--\n",
			"S|Text file: \"attachment.jpg\" application/octet-stream",
		},
		"a picture that is called a text": {
			"Subject: S\nContent-Type: text/plain\nContent-Transfer-Encoding: base64\n\n" + encoded + "\n",
			"S| file: \"attachment.jpg\" application/octet-stream",
		},
		"a text that is no UTF-8":         {"Subject: S\nContent-Type: text/plain; charset=utf-8\n\nT\xFCr\n", "S|Tür"},
		"a text in UTF-16 without a name": {"Subject: S\n\n\xFF\xFET\x00\xFC\x00r\x00", "S|Tür"},
		"a text with NUL":                 {"Subject: S\n\nT\x00ext\x00\x00\n", "S|Text"},
		"a charset of HTML": {
			"Subject: S\nContent-Type: text/html\n\n<meta charset=koi8-r>\xC4\xC1\n",
			"S|<meta charset=koi8-r>да",
		},
		"a part within a part, cut": {
			multipart + "\n--b\nContent-Type: multipart/alternative; boundary=c\n\n--c\n\nText\n" + picture,
			"S|Text " + file,
		},
		"quoted-printable with other signs": {
			"Subject: S\nContent-Transfer-Encoding: quoted-printable\n\nT=FCr =ZZ 5 = 5=\n =3D=\n",
			"S|Tür =ZZ 5 = 5 =",
		},
		"NUL in a subject":                    {"Subject: S\x00S\n\nText\n", "SS|Text"},
		"base64 without padding in a subject": {"Subject: =?utf-8?B?R3LDvG4?=\n\nText\n", "Grün|Text"},
		"two carriage returns": {
			strings.ReplaceAll(multipart+"\n--b\n\nText\nmore\n"+picture+"--b--\n", "\n", "\r\r\n"),
			"S|Text\nmore " + file,
		},
		"carriage returns alone": {strings.ReplaceAll("Subject: S\nX-A: b\n\nText\nmore\n", "\n", "\r"), "S|Text\nmore"},
		"parameters without an indentation": {"Subject: S\nContent-Type: multipart/mixed;\nboundary=b\n\n--b\n\nText\n--b\nContent-Type: " +
			"image/jpeg;\nname=\"a.jpg\"\nContent-Transfer-Encoding: base64\n\n" + encoded + "\n--b--\n", "S|Text " + file},
		"a text after a semicolon":       {"Subject: S;\nname of the host: nas\n", "S;|name of the host: nas"},
		"quotes around quoted-printable": {"Subject: S\nContent-Transfer-Encoding: \"quoted-printable\"\n\nT=FCr\n", "S|Tür"},
	} {
		wire := strings.ReplaceAll(test.mail, "\n", "\r\n")
		for _, r := range []io.Reader{strings.NewReader(wire), strings.NewReader(test.mail), iotest.OneByteReader(strings.NewReader(wire))} {
			var k recorded
			m, err := Read(r, k.store())
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			files, _, _ := strings.Cut(k.files.String(), ` "\xff`)
			if files != "" {
				files = " " + files
			}
			if got := fmt.Sprintf("%s|%s%s", m.Subject, m.Body, files); got != test.want {
				t.Errorf("%s: got\n%q, want\n%q", name, got, test.want)
			}
		}
	}
}

// TestBase64 reads damaged base64 as far as it goes, and texts that are not in base64.
func TestBase64(t *testing.T) {
	const hello = "hello world, here is the camera at the door"
	whole := base64.StdEncoding.EncodeToString([]byte(hello)) // without padding in its middle
	for name, test := range map[string]struct{ body, want string }{
		"as it should be":              {whole, hello},
		"without padding":              {"aGVsbG8gd29ybGQ", "hello world"},
		"a character left over":        {"aGVsbG8gd29ybGQhA", "hello world!"},
		"padding in the middle":        {"aGVsbG8=\nIHdvcmxk", "hello world"},
		"padding in a line":            {"aGVsbG8=IHdvcmxk", "hello world"},
		"too much padding":             {"aGVsbG8====\nIHdvcmxk==", "hello world"},
		"junk":                         {"aGVs*bG8g\n!!d29y\xE4bGQ=", "hello world"},
		"spaces":                       {"  aGVs bG8g\t\n d29ybGQ=", "hello world"},
		"a text after it":              {"aGVsbG8gd29ybGQ=\n-- \nSent by a list.", "hello world"},
		"a text after it, no padding":  {whole[:56] + "\n\n-- \nSent by a list", hello[:42]},
		"a line without base64 in it":  {"aGVsbG8gd29y\n\n--\nbGQ=", "hello world"},
		"an empty line before it":      {"\n\naGVs bG8gd29ybGQ=", "hello world"},
		"plain text":                   {"The UPS is on battery.", "The UPS is on battery."},
		"one word":                     {"Alarm", "Alarm"},
		"words of base64's characters": {"Motion at the front door", "Motion at the front door"},
		"a name and a number":          {"Alarm: 4", "Alarm: 4"},
		"UTF-8":                        {base64.StdEncoding.EncodeToString([]byte("Tür")), "Tür"},
		"NUL":                          {base64.StdEncoding.EncodeToString([]byte("a\x00b")), "ab"},
		"nothing":                      {"", ""},
		"one long line":                {strings.Repeat(base64.StdEncoding.EncodeToString([]byte("abc")), 20_000), strings.Repeat("abc", 20_000)},
	} {
		for _, encoding := range []string{"base64", `"base64"`, "BASE64 ", "base64; x", "'base64'"} {
			m, err := Read(strings.NewReader("Content-Transfer-Encoding: "+encoding+"\n\n"+test.body+"\n"), new(recorded).store())
			if err != nil || m.Body != test.want {
				t.Errorf("%s, %s: got %.100q, %v; want %.100q", name, encoding, m.Body, err, test.want)
			}
		}
	}
	var k recorded
	_, err := Read(strings.NewReader("Content-Type: image/jpeg; name=a.jpg\nContent-Transfer-Encoding: base64\n\n/9j/ 4AAQ\n*SkZJRgA\n"),
		k.store())
	if want := fmt.Sprintf("file: \"a.jpg\" image/jpeg %q\n", jpeg); err != nil || k.files.String() != want {
		t.Errorf("a picture: got %s, %v; want %s", k.files.String(), err, want)
	}
}

// TestQuotedPrintable decodes long lines piece by piece.
func TestQuotedPrintable(t *testing.T) {
	for n := bufferSize - 4; n < bufferSize+4; n++ {
		text := strings.Repeat("a", n)
		got, err := io.ReadAll(&quotedPrintable{r: newBuffer(strings.NewReader(text + "=C3=BC=\r\nb \t\r\nc="))})
		if want := text + "übn\r\nc="; err != nil || string(got) != strings.Replace(want, "bn", "b", 1) {
			t.Errorf("%d: got …%q, %v", n, bytes.TrimLeft(got, "a"), err)
		}
	}
}

// TestUnflow ends paragraphs where RFC 3676 says.
func TestUnflow(t *testing.T) {
	for text, want := range map[string]string{
		"a \nb\n":              "a b\n",
		"a \nb \nc":            "a b c",
		"a\n b\n":              "a\nb\n",
		"> a \n> b\nc":         "> a b\nc",
		"> a \nb":              "> a \nb",
		"a \n> b":              "a \n> b",
		"> a \n>> b \n>> c\n":  "> a \n>> b c\n",
		"a \n-- \nme \nyou":    "a \n-- \nme you",
		"-- \na":               "-- \na",
		"> a \n> -- \n> b":     "> a \n> -- \n> b",
		">a\n":                 "> a\n",
		"a \n":                 "a ",
		" >not quoted \n more": ">not quoted more",
		"":                     "",
	} {
		if got := unflow(text, false); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := unflow("a \nb", true); got != "ab" {
		t.Errorf("delsp: got %q", got)
	}
}
