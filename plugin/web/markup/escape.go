package markup

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// place is where in a page the output is: what the bytes so far mean for those that follow. The zero value is text.
type place struct {
	in      int
	element string // the tag, or the element whose content is not markup
	name    string // of the attribute, while in a tag
	quote   byte   // that ends the attribute's value
	value   string // of the attribute, as far as templates have it
	closing bool   // the tag ends an element
}

const (
	inText     = iota
	inTagName  // after <
	inTag      // between attributes
	inName     // of an attribute
	inValue    // before an attribute's value
	inQuotes   // in an attribute's value
	inUnquoted // in a value without quotes
	inContent  // of title, textarea, script or style
	inComment
)

// literal are the elements whose content has no tags.
var literal = []string{"title", "textarea", "script", "style"}

// addresses are attributes that browsers load or follow.
var addresses = []string{"action", "background", "cite", "data", "formaction", "href", "icon", "longdesc", "manifest", "ping", "poster",
	"src", "usemap", "xlink:href"}

// between tells whether the page may end here.
func (p *place) between() bool { return p.in == inText }

// static moves on over text of a template.
func (p *place) static(text string) {
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch p.in {
		case inText:
			if strings.HasPrefix(text[i:], "<!--") {
				p.in = inComment
			} else if c == '<' {
				*p = place{in: inTagName, closing: strings.HasPrefix(text[i:], "</")}
			}
		case inComment:
			if strings.HasPrefix(text[i:], "-->") {
				p.in, i = inText, i+2
			}
		case inContent:
			if end := "</" + p.element; len(text)-i >= len(end) && strings.EqualFold(text[i:i+len(end)], end) {
				*p = place{in: inTagName, closing: true}
			}
		default:
			p.tag(c)
		}
	}
}

// tag moves on over a byte of a tag.
func (p *place) tag(c byte) {
	switch {
	case p.in == inQuotes:
		if c == p.quote {
			p.in = inTag
		} else {
			p.value += string(c)
		}
	case c == '>':
		if !p.closing && slices.Contains(literal, p.element) {
			p.in = inContent
		} else {
			*p = place{}
		}
	case p.in == inTagName:
		if space(c) {
			p.in = inTag
		} else if c != '/' {
			p.element += strings.ToLower(string(c))
		}
	case p.in == inTag:
		if !space(c) && c != '/' {
			p.in, p.name, p.value = inName, strings.ToLower(string(c)), ""
		}
	case p.in == inName:
		if c == '=' {
			p.in = inValue
		} else if space(c) {
			p.in = inTag
		} else {
			p.name += strings.ToLower(string(c))
		}
	case p.in == inValue:
		if c == '"' || c == '\'' {
			p.in, p.quote = inQuotes, c
		} else if !space(c) {
			p.in = inUnquoted
		}
	case p.in == inUnquoted:
		if space(c) {
			p.in = inTag
		}
	}
}

func space(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }

// text is the replacement of bytes that mean something in text or in a quoted attribute.
var text = strings.NewReplacer("\x00", "\uFFFD", `"`, "&#34;", "&", "&amp;", "'", "&#39;", "+", "&#43;", "<", "&lt;", ">", "&gt;")

// escape returns a value as the place needs it.
func (p *place) escape(value reflect.Value) (string, error) {
	var plain string
	safe := ""
	if value = indirect(value); value.IsValid() {
		plain = fmt.Sprint(value.Interface())
		switch value.Interface().(type) {
		case HTML:
			safe = "html"
		case CSS:
			safe = "css"
		}
	}
	switch {
	case p.in == inText && safe == "html", p.in == inContent && p.element == "style" && safe == "css":
		return plain, nil
	case safe != "":
		return "", fmt.Errorf("a part of a page cannot be in %s", p)
	case p.in == inText, p.in == inContent && (p.element == "title" || p.element == "textarea"):
		return text.Replace(plain), nil
	case p.in != inQuotes:
		return "", fmt.Errorf("a value cannot be in %s", p)
	}
	name := strings.TrimPrefix(p.name, "data-")
	switch {
	case strings.HasPrefix(name, "on"), name == "style", name == "srcset", name == "srcdoc":
		return "", fmt.Errorf("a value cannot be in %s", p)
	case slices.Contains(addresses, name):
		var err error
		if plain, err = p.address(plain); err != nil {
			return "", err
		}
	}
	p.value += plain // what follows is not the beginning
	return text.Replace(plain), nil
}

// refused is what html/template writes for an address that would run a script.
const refused = "#ZgotmplZ"

// address returns an address, or a part of one, that follows what the template has of it.
func (p *place) address(plain string) (string, error) {
	switch {
	case strings.ContainsAny(p.value, "?#"):
		return percent(plain, ""), nil
	case p.value != "":
		return "", errors.New("a value cannot follow the beginning of an address, unless that has a ? or #")
	}
	if scheme, _, found := strings.Cut(plain, ":"); found && !strings.ContainsAny(scheme, "/?#") {
		switch strings.ToLower(scheme) {
		case "http", "https", "mailto":
		default:
			return refused, nil
		}
	}
	return percent(plain, "!#$&*+,/:;=?@[]"), nil
}

// percent writes bytes by their numbers, but for letters, digits, -._~ and those that are kept. An address that has
// such numbers already keeps them.
func percent(plain, kept string) string {
	var b strings.Builder
	for i := 0; i < len(plain); i++ {
		c := plain[i]
		written := kept != "" && c == '%' && i+2 < len(plain) && hexadecimal(plain[i+1]) && hexadecimal(plain[i+2])
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if letter || written || strings.IndexByte("-._~", c) >= 0 || strings.IndexByte(kept, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	return b.String()
}

func hexadecimal(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// String names the place for errors.
func (p *place) String() string {
	switch p.in {
	case inText:
		return "text"
	case inContent:
		return "the content of <" + p.element + ">"
	case inQuotes:
		return "the attribute " + p.name
	case inComment:
		return "a comment"
	}
	return "a tag, outside of quotes"
}
