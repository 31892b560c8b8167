package charset

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/transform"
)

// utf7 is UTF-7 (RFC 2152), which golang.org/x/text does not have.
type utf7 struct{}

func (utf7) NewDecoder() *encoding.Decoder { return &encoding.Decoder{Transformer: new(utf7Decoder)} }

type utf7Decoder struct {
	encoded bool   // within base64
	start   bool   // the base64 begins here
	bits    uint32 // of the base64, the last ones being count bits that are not used
	count   int
	high    rune // first half of a character that has two; 0 if none
}

// Reset implements transform.Transformer.
func (d *utf7Decoder) Reset() { *d = utf7Decoder{} }

// Transform implements transform.Transformer.
func (d *utf7Decoder) Transform(dst, src []byte, _ bool) (nDst, nSrc int, err error) {
	for ; nSrc < len(src); nSrc++ {
		if len(dst)-nDst < utf8.UTFMax {
			return nDst, nSrc, transform.ErrShortDst
		}
		if r := d.next(src[nSrc]); r >= 0 {
			nDst += utf8.EncodeRune(dst[nDst:], r)
		}
	}
	return nDst, nSrc, nil
}

// next returns the character that ends with c, or -1 if none does.
func (d *utf7Decoder) next(c byte) rune {
	value := strings.IndexByte(base64Alphabet, c)
	switch {
	case !d.encoded && c == '+':
		*d = utf7Decoder{encoded: true, start: true}
		return -1
	case !d.encoded && c < utf8.RuneSelf:
		return rune(c)
	case !d.encoded:
		return utf8.RuneError
	case value < 0:
		wasStart := d.start
		d.Reset()
		switch {
		case c != '-':
			return d.next(c)
		case wasStart:
			return '+'
		}
		return -1
	}
	d.start = false
	d.bits, d.count = d.bits<<6|uint32(value), d.count+6
	if d.count < 16 {
		return -1
	}
	d.count -= 16
	r := rune(d.bits >> d.count & 0xffff)
	switch high := d.high; {
	case high != 0:
		d.high = 0
		return utf16.DecodeRune(high, r)
	case utf16.IsSurrogate(r):
		d.high = r
		return -1
	}
	return r
}

const base64Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
