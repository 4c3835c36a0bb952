package markup

import (
	"bytes"
	"fmt"
	"html/template"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

type inner struct {
	Name, URL string
	Number    int
	Good      bool
}

type embedded struct{ Deep string }

type data struct {
	Title   string
	Rows    []inner
	None    []string
	By      map[string]string
	Nothing *inner
	One     *inner
	Any     any
	*embedded
	hidden string
}

func example(hostile string) data {
	return data{Title: hostile, Rows: []inner{{hostile, "/x?a=" + hostile, 7, true}, {"b", hostile, 0, false}},
		By:  map[string]string{"z": hostile, "a": "1"},
		One: &inner{Name: hostile}, Any: 3, embedded: &embedded{hostile}, hidden: "h"}
}

// hostile are values that would mean something else in a page if they were not escaped.
var hostile = []string{"", "plain", `<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='x`,
	"javascript:alert(1)", "JavaScript:alert(1)",
	" javascript:x", "data:text/html,x", "https://example.org/a b?c=d&e=f#g", "//example.org", "a:b",
	"/a:b", "mailto:x@y", "</title>", "</textarea><b>", "-->",
	"a+b", "%41%zz%", "é€\x00", "`{{.}}", "a\nb\tc\\"}

// pages are templates of everything that templates have here.
var pages = map[string]string{
	"text":  `<p>{{.Title}}</p>{{.Deep}}{{.Any}}`,
	"title": `<title>{{.Title}} · x</title><textarea rows="3">{{.Title}}</textarea><p>{{.Title}}</p>`,
	"attributes": `<a id="x-{{.Title}}" class='{{.Title}}' data-row="{{.Title}}" hidden data-x=plain>{{.Title}}</a>` +
		`<input value="{{.Title}}"/>`,
	"addresses": `{{range .Rows}}<a href="{{.URL}}" rel="x">{{.Name}}</a><img src='{{.URL}}'><i data-src="{{.URL}}"></i>{{end}}`,
	"part of one": `<a href="#{{.Title}}">a</a><a href="/x?y={{.Title}}&amp;z={{.Title}}">b</a><a href="{{if .Any}}?{{else}}` +
		`?follow=1{{end}}">c</a>`,
	"branches in tags": `{{range .Rows}}<td{{if .Good}} class="n"{{else if .Number}} class="{{.Name}}"{{end}}{{with .Name}}` +
		` title="{{.}}"{{end}}>{{.Number}}</td>{{end}}`,
	"variables": `{{range $i, $row := .Rows}}{{$name := .Name}}{{if and (eq $i 0) $row.URL}}{{$name}}{{else}}{{$.Title}}{{end}}{{end}}`,
	"a map":     `{{range $key, $value := .By}}<template data-pool="{{$key}}">{{$value}}</template>{{else}}none{{end}}{{.By.z}}`,
	"functions": `{{range .Rows}}{{if gt (len .Name) 1}}long{{else if ge .Number 7}}seven{{end}}{{if not .Good}}bad{{end}}` +
		`{{if ne .Name "b"}}{{printf "%d-%s" .Number .Name}}{{end}}{{end}}` +
		`{{(index .Rows 1).Name}}{{if or .Nothing .One}}or{{end}}{{if and .Nothing .Nothing.Name}}and{{end}}{{if eq .Any 3}}three{{end}}`,
	"templates": `{{define "row"}}<li title="{{.Name}}">{{.Name}}</li>{{end}}<ul>{{range .Rows}}{{template "row" .}}{{end}}` +
		`</ul>{{with .Nothing}}x{{else}}{{template "row" .One}}{{end}}`,
	"svg":            `<svg width="1"><rect class="f-{{.Title}}"/><rect fill="url(#p{{printf "%d" .Any}})"/></svg>{{.Title}}`,
	"nothing":        `{{with .Nothing}}{{.Name}}{{end}}{{range .None}}x{{else}}empty{{end}}`,
	"assigned":       `{{$x := 1}}{{if .Any}}{{$x = 2}}{{end}}{{$x}}`,
	"only a comment": `{{/* nothing */}}<p>x</p>`,
}

// both executes a template here and with html/template.
func both(t *testing.T, page string, of any) (got, want string, err, wantErr error) {
	t.Helper()
	own, err := Parse(fstest.MapFS{"a.html": {Data: []byte(page)}}, "*.html", nil)
	if err != nil {
		return "", "", err, nil
	}
	var out, expected bytes.Buffer
	err = own.Execute(&out, "a.html", of)
	twin, wantErr := template.New("page").Parse(page)
	if wantErr == nil {
		wantErr = twin.Execute(&expected, of)
	}
	return out.String(), expected.String(), err, wantErr
}

// TestAsHTMLTemplate checks that every page comes out as with html/template, whatever the values.
func TestAsHTMLTemplate(t *testing.T) {
	for name, page := range pages {
		for _, value := range hostile {
			got, want, err, wantErr := both(t, page, example(value))
			if err != nil || wantErr != nil {
				t.Errorf("%s: %q: %v; html/template: %v", name, value, err, wantErr)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %q (-html/template +here):\n%s", name, value, diff)
			}
		}
	}
}

// FuzzAsHTMLTemplate is TestAsHTMLTemplate with values that the fuzzer makes up.
func FuzzAsHTMLTemplate(f *testing.F) {
	for _, value := range hostile {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for name, page := range pages {
			got, want, err, wantErr := both(t, page, example(value))
			if err != nil || wantErr != nil || got != want {
				t.Fatalf("%s: %q: %q, want %q; %v; html/template: %v", name, value, got, want, err, wantErr)
			}
		}
	})
}

// TestRefused checks that what is not known here is an error, and that nothing is written then.
func TestRefused(t *testing.T) {
	for name, test := range map[string]struct{ page, want string }{
		"in a script":                  {`<script>let x = {{.Title}}</script>`, "a value cannot be in the content of <script>"},
		"in an event":                  {`<a onclick="{{.Title}}">`, "a value cannot be in the attribute onclick"},
		"in a style":                   {`<a style="{{.Title}}">`, "a value cannot be in the attribute style"},
		"in a style sheet":             {`<style>{{.Title}}</style>`, "a value cannot be in the content of <style>"},
		"as a name":                    {`<a {{.Title}}="x">`, "a value cannot be in a tag, outside of quotes"},
		"without quotes":               {`<a title={{.Title}}>`, "a value cannot be in a tag, outside of quotes"},
		"in a comment":                 {`<!-- {{.Title}} -->`, "a value cannot be in a comment"},
		"after a part of an address":   {`<a href="/x/{{.Title}}">`, "a value cannot follow the beginning of an address"},
		"two parts of an address":      {`<a href="{{.Any}}{{.Title}}">`, "a value cannot follow the beginning of an address"},
		"a tag that does not end":      {`<a title="{{.Title}}"`, "the page ends within a tag"},
		"a method":                     {`{{.One.Method}}`, "markup.inner has no field Method"},
		"a field that does not exist":  {`{{.Missing}}`, "markup.data has no field Missing"},
		"a field that is not public":   {`{{.hidden}}`, "markup.data has no field hidden"},
		"a field of nothing":           {`{{.Nothing.Name}}`, "nothing has no field Name"},
		"a field of a string":          {`{{.Title.Name}}`, "string has no field Name"},
		"arguments of a field":         {`{{.Title 1}}`, "only functions have arguments"},
		"a pipeline":                   {`{{.Title | len}}`, "pipelines of more than one command are refused"},
		"another number of arguments":  {`{{len}}`, "0 arguments, want 1"},
		"an argument of another type":  {`{{index .Rows "x"}}`, "argument 2 is a string, want int"},
		"an element that is not there": {`{{index .Rows 2}}`, "element 2 of 2"},
		"elements of a string":         {`{{range .Title}}x{{end}}`, "string has no elements"},
		"things of different kinds":    {`{{if eq .Title 1}}x{{end}}`, "string and int cannot be compared"},
		"no template":                  {`{{template "none"}}`, `there is no template "none"`},
		"templates without end":        {`{{template "page" .}}`, "without end"},
		"a part of a page in quotes":   {`<a title="{{markup}}">`, "a part of a page cannot be in the attribute title"},
		"an error of a function":       {`{{fails}}`, "out of luck"},
		"a break":                      {`{{range .Rows}}{{break}}{{end}}`, "such an action is not known"},
	} {
		funcs := map[string]any{"markup": func() HTML { return "<b>" }, "fails": func() (string, error) { return "", fmt.Errorf("out of luck") }}
		own, err := Parse(fstest.MapFS{"a.html": {Data: []byte(`{{define "page"}}before ` + test.page + `{{end}}`)}}, "*.html", funcs)
		var out bytes.Buffer
		if err == nil {
			err = own.Execute(&out, "page", example("x"))
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
		if out.Len() > 0 {
			t.Errorf("%s: wrote %q", name, out.String())
		}
	}
}

// TestSafe checks that parts of pages and style sheets are written as they are, where they belong.
func TestSafe(t *testing.T) {
	funcs := map[string]any{"part": func(of string) (HTML, error) { return HTML("<b>" + of + "</b>"), nil },
		"sheet": func() CSS { return "a{b:c}" }}
	page := []byte(`{{define "page"}}<style>{{sheet}} d{}</style><p>{{part "x"}}{{part .Title}}</p>{{end}}`)
	own, err := Parse(fstest.MapFS{"a.html": {Data: page}}, "*.html", funcs)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := own.Execute(&out, "page", example("y")); err != nil {
		t.Fatal(err)
	}
	if want := `<style>a{b:c} d{}</style><p><b>x</b><b>y</b></p>`; out.String() != want {
		t.Errorf("%s, want %s", out.String(), want)
	}
	if _, err := Parse(fstest.MapFS{"a.html": {Data: []byte(`{{nosuch .}}`)}}, "*.html", nil); err == nil {
		t.Error("an unknown function was accepted")
	}
}
