package userdata

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/mail"
	"net/textproto"
	"regexp"
	"slices"
	"strings"
)

// part is one part of a multipart document: its headers, and its encoded body.
type part struct {
	header textproto.MIMEHeader
	body   string
}

// Content types by which cloud-init and nodeadm distinguish parts
// (https://docs.cloud-init.io/en/latest/explanation/format/index.html).
const (
	typeShell      = `text/x-shellscript; charset="us-ascii"`
	typeNodeConfig = "application/node.eks.aws"
)

func partOf(contentType, body string) part {
	return part{textproto.MIMEHeader{"Content-Type": {contentType}}, body}
}

// markers are the first bytes of texts that cloud-init recognizes without a content type.
var markers = []struct{ prefix, contentType string }{
	{"#cloud-config-archive", "text/cloud-config-archive"},
	{"#cloud-config", "text/cloud-config"},
	{"#cloud-boothook", "text/cloud-boothook"},
	{"#include-once", "text/x-include-once-url"},
	{"#include", "text/x-include-url"},
	{"#part-handler", "text/part-handler"},
	{"## template: jinja", "text/jinja2"},
	{"#!", typeShell},
}

// marked returns the content type of a text that begins with a marker.
func marked(text string) (contentType string, ok bool) {
	for _, marker := range markers {
		if strings.HasPrefix(text, marker.prefix) {
			return marker.contentType, true
		}
	}
	return "", false
}

// looksLikeMIME reports whether a text begins with the headers of a MIME document: MIME-Version or Content-Type, at any
// position in them.
func looksLikeMIME(text string) bool {
	for line := range strings.Lines(text) {
		name, _, ok := strings.Cut(line, ":")
		switch {
		case ok && (strings.EqualFold(name, "MIME-Version") || strings.EqualFold(name, "Content-Type")):
			return true
		case ok && headerName.MatchString(name) || line[0] == ' ' || line[0] == '\t': // another header or its continuation
		default:
			return false
		}
	}
	return false
}

// headerName matches the names of further headers in documents for cloud-init, such as Number-Attachments.
var headerName = regexp.MustCompile(`^[A-Z][A-Za-z]*(-[A-Z][A-Za-z]*)+$`)

// parseMIME splits a document into its parts. A document that is not multipart is a single part.
func parseMIME(text string) ([]part, error) {
	message, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return nil, badMIME("the headers of the MIME document cannot be read", err)
	}
	mediaType, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		return nil, badMIME("the header Content-Type of the MIME document cannot be read", err)
	}
	if !strings.HasPrefix(mediaType, "multipart/") {
		body, err := io.ReadAll(message.Body)
		if err != nil {
			return nil, badMIME("the MIME document cannot be read", err)
		}
		header := textproto.MIMEHeader(maps.Clone(message.Header))
		header.Del("MIME-Version")
		return []part{{header, string(body)}}, nil
	}
	boundary := params["boundary"]
	if boundary == "" {
		return nil, badMIME("the header Content-Type of the MIME document has no boundary", nil)
	}
	return readParts(multipart.NewReader(message.Body, boundary), boundary)
}

func readParts(reader *multipart.Reader, boundary string) ([]part, error) {
	var parts []part
	for {
		next, err := reader.NextRawPart()
		if err == io.EOF && len(parts) > 0 { // bare, so the last boundary was found
			return parts, nil
		}
		if err == io.EOF {
			return nil, badMIME(fmt.Sprintf("the MIME document has no part: no line is --%s", boundary), nil)
		}
		if err != nil {
			return nil, badMIME(fmt.Sprintf("part %d of the MIME document cannot be read, or the last line --%s-- is missing",
				len(parts)+1, boundary), err)
		}
		body, err := io.ReadAll(next)
		if err != nil {
			return nil, badMIME(fmt.Sprintf("part %d of the MIME document has no end: the last line --%s-- is missing", len(parts)+1, boundary), err)
		}
		parts = append(parts, part{next.Header, string(body)})
	}
}

func badMIME(problem string, err error) error {
	return &InvalidError{Field: "spec.userData", Problem: problem, Err: err,
		Remedy: `begin with the lines MIME-Version: 1.0 and Content-Type: multipart/mixed; boundary="//", an empty line, then --// before each part and --//-- at the end`}
}

// mediaType returns the part's media type, in lower case, without parameters, and text/plain if the part has none.
func (p part) mediaType() (string, error) {
	text := p.header.Get("Content-Type")
	if text == "" {
		return "text/plain", nil
	}
	mediaType, _, err := mime.ParseMediaType(text)
	if err != nil {
		return "", badMIME(fmt.Sprintf("the header Content-Type: %s of a part cannot be read", text), err)
	}
	return mediaType, nil
}

// compose writes parts as one document, in order.
func compose(parts []part) []byte {
	boundary := freeBoundary(parts)
	var out bytes.Buffer
	fmt.Fprintf(&out, "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=%q\n\n", boundary)
	for _, p := range parts {
		fmt.Fprintf(&out, "--%s\n", boundary)
		for _, name := range slices.Sorted(maps.Keys(p.header)) {
			for _, value := range p.header[name] {
				fmt.Fprintf(&out, "%s: %s\n", name, value)
			}
		}
		fmt.Fprintf(&out, "\n%s\n", p.body)
	}
	fmt.Fprintf(&out, "--%s--\n", boundary)
	return out.Bytes()
}

// freeBoundary returns // or, if a line of some part contains that boundary, a longer one.
func freeBoundary(parts []part) string {
	boundary := "//"
	for slices.ContainsFunc(parts, func(p part) bool { return strings.Contains("\n"+p.body, "\n--"+boundary) }) {
		boundary += "/"
	}
	return boundary
}

// plain removes a byte order mark, carriage returns and leading blank lines. Editors on Windows write them, and neither
// cloud-init nor a shell accepts them.
func plain(text string) string {
	return strings.TrimLeft(strings.ReplaceAll(strings.TrimPrefix(text, byteOrderMark), "\r", ""), "\n\t ")
}

const byteOrderMark = "\ufeff"
