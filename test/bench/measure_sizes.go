package main

import (
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"time"
)

// sizes measures the memory that large messages take.
func (b *bench) sizes() error {
	var keys strings.Builder
	keys.WriteString(b.destinationKey("texts", "", 10))
	keys.WriteString("\t\tkey files {\n")
	for i := range 10 {
		fmt.Fprintf(&keys, "\t\t\turl form://%s/file/%d\n", b.dest.address, i)
	}
	keys.WriteString("\t\t}\n")
	c, err := b.start(b.binary, siteConfig{keys: keys.String()})
	if err != nil {
		return err
	}
	defer c.stop()
	fmt.Printf("%-28s %10s %10s %10s\n", "to ten destinations", "idle MiB", "peak MiB", "above MiB")
	for _, m := range []struct {
		name string
		send func() error
	}{
		{"a text of 1 MiB", func() error {
			return post(http.DefaultClient, "http://"+c.gateway+"/notify/texts", "text/plain", strings.NewReader(strings.Repeat("0123456789abcde\n", 1<<16)))
		}},
		{"a file of 50 MiB", func() error { return sendFile(c) }},
	} {
		var idle, peak []float64
		for range b.rounds {
			if _, err := c.usage(true); err != nil {
				return err
			}
			time.Sleep(100 * time.Millisecond)
			before := c.memory("VmRSS")
			c.resetPeak()
			if err := m.send(); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			idle, peak = append(idle, before), append(peak, c.memory("VmHWM"))
		}
		fmt.Printf("%-28s %10.1f %10.1f %10.1f\n", m.name, median(idle), median(peak), median(peak)-median(idle))
	}
	if n := b.dest.large.Load(); n != int32(10*b.rounds) { //nolint:gosec // a small number
		return fmt.Errorf("%d of %d files have arrived", n, 10*b.rounds)
	}
	return nil
}

// sendFile sends a file of 50 MiB to ten destinations.
func sendFile(c *caddy) error {
	r, w := io.Pipe()
	form := multipart.NewWriter(w)
	go func() {
		_ = w.CloseWithError(writeFile(form))
	}()
	return post(http.DefaultClient, "http://"+c.gateway+"/notify/files", form.FormDataContentType(), r)
}

func writeFile(form *multipart.Writer) error {
	for name, value := range map[string]string{"title": "With a file", "body": "see attached"} {
		if err := form.WriteField(name, value); err != nil {
			return err
		}
	}
	part, err := form.CreateFormFile("attach", "disk.img")
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for range largeRequest >> 20 {
		if _, err := part.Write(block); err != nil {
			return err
		}
	}
	return form.Close()
}
