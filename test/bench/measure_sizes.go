//go:build linux

package main

import (
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"time"
)

// sizes measures the memory for large messages.
func (b *bench) sizes() error {
	var keys strings.Builder
	keys.WriteString(b.destinationKey("texts", "/hold", 10))
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
	var held []float64
	for range b.rounds {
		n, err := b.holdText(c)
		if err != nil {
			return err
		}
		held = append(held, n)
	}
	fmt.Printf("a text of 1 MiB to ten destinations, none of which has answered: %.1f MiB in use\n", median(held)/(1<<20))
	var idle, peak []float64
	for range b.rounds {
		if _, err := c.usage(true); err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
		before := c.memory("VmRSS")
		c.resetPeak()
		if err := sendFile(c); err != nil {
			return err
		}
		idle, peak = append(idle, before), append(peak, c.memory("VmHWM"))
	}
	fmt.Printf("a file of 50 MiB to ten destinations: %.1f MiB resident above %.1f\n", median(peak)-median(idle), median(idle))
	if n := b.dest.large.Load(); n != int32(10*b.rounds) { //nolint:gosec // a small number
		return fmt.Errorf("%d of %d files have arrived", n, 10*b.rounds)
	}
	return nil
}

// holdText sends a text of 1 MiB to ten destinations that do not answer, and
// returns the increase of the bytes in use.
func (b *bench) holdText(c *caddy) (float64, error) {
	before, err := c.usage(true)
	if err != nil {
		return 0, err
	}
	sent := make(chan error, 1)
	go func() {
		sent <- post(http.DefaultClient, "http://"+c.gateway+"/notify/texts", "text/plain", strings.NewReader(strings.Repeat("0123456789abcde\n", 1<<16)))
	}()
	for b.dest.held.Load() < 10 {
		select {
		case err := <-sent:
			return 0, fmt.Errorf("a text of 1 MiB: %w", err)
		case <-time.After(time.Millisecond):
		}
	}
	if _, err := c.usage(true); err != nil { // two collections empty the pools
		return 0, err
	}
	after, err := c.usage(true)
	for range 10 {
		b.dest.release <- struct{}{}
	}
	if err != nil {
		return 0, err
	}
	return after.settled - before.settled, <-sent
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
