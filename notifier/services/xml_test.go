package services

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

// TestXMLNames checks that a field with any name has an element that XML allows.
func TestXMLNames(t *testing.T) {
	for field, want := range map[string]string{
		"Version": "Version", "a-b_1": "a-b_1", "x<y": "xy", "1x": "_1x", "-x": "_-x", "ö": "ö",
		"Größe 1": "Größe1", "名": "名", "☃": "_", "a☃": "a", " ": "_", "\U00010400z": "z",
		"\u0301x": "x", "١": "_", "x:y": "xy", "xml\x00": "xml",
	} {
		got := xmlName(field)
		if got != want {
			t.Errorf("%q: %q, want %q", field, got, want)
		}
		d := xml.NewDecoder(strings.NewReader("<" + got + ">v</" + got + ">"))
		for {
			_, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Errorf("%q: %v", field, err)
				break
			}
		}
	}
}
