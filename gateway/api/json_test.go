package api

import (
	"encoding/json"
	"strings"
	"testing"
)

// BenchmarkReadJSON compares readJSON with encoding/json; see the comment in
// json.go.
func BenchmarkReadJSON(b *testing.B) {
	for name, text := range map[string]string{
		"message": `{"title":"Backup","body":"The nightly backup of db1 is done: 41 GiB in 12 minutes.","type":"success","tag":["ops","db"]}`,
		"text":    `{"body":"` + strings.Repeat(`A line of a log, which ends here.\n`, 1<<20/35) + `"}`,
		"file":    `{"body":"x","attach":{"filename":"a","base64":"` + strings.Repeat("QUJD", 1<<20/4) + `"}}`,
		"array":   `{"body":"x","alerts":[` + strings.Repeat(`{"labels":{"alertname":"Up","job":"node"},"value":1.5},`, 1<<20/55) + `null]}`,
	} {
		body := []byte(text)
		b.Run(name+"/readJSON", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := readJSON(body); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/Unmarshal", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var fields map[string]json.RawMessage
				if err := json.Unmarshal(body, &fields); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
