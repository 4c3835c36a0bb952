package web

import (
	"bytes"
	"html/template"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/plugin/web/markup"
	"github.com/karpenter-go/karpenter/plugin/web/picture"
)

// twin reads the templates with html/template. What is part of a page is marked as such in its way.
func twin(t *testing.T) *template.Template {
	t.Helper()
	parts := template.New("").Funcs(template.FuncMap{
		"patterns": func() template.HTML { return template.HTML(picture.Patterns()) },
		"entries":  func(p *picture.Picture) []entry { return legendOf("", nil, p) },
		"style": func() (template.CSS, error) {
			text, err := assets.ReadFile("assets/page.css")
			return template.CSS(picture.CSS() + string(text)), err
		},
		"picture": func(p *picture.Picture) (template.HTML, error) {
			var out bytes.Buffer
			err := p.WriteSVG(&out, picture.Options{})
			return template.HTML(out.String()), err
		},
		"part": func(of markup.HTML) template.HTML { return template.HTML(of) },
	})
	files, err := assets.ReadDir("assets")
	if err != nil {
		t.Fatal(err)
	}
	marked := strings.NewReplacer("{{.Inline}}", "{{part .Inline}}", "{{.InlineNarrow}}", "{{part .InlineNarrow}}")
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".html") {
			continue
		}
		text, err := assets.ReadFile("assets/" + file.Name())
		if err != nil {
			t.Fatal(err)
		}
		template.Must(parts.New(file.Name()).Parse(marked.Replace(string(text))))
	}
	return parts
}

// fill sets everything that templates may read: texts to the text, two elements to each slice and map, and flags to true, or
// else to false and every second pointer to nil.
func fill(v reflect.Value, text string, full bool, depth int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(full)
	case reflect.Pointer:
		if depth < 8 && (full || depth%2 == 0) {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), text, full, depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), text, full != (i == 1), depth+1)
		}
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for _, key := range []string{"b", text} {
			value := reflect.New(v.Type().Elem()).Elem()
			fill(value, text, full, depth+1)
			v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), value)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), text, full, depth+1)
			}
		}
	case reflect.Interface:
		if v.NumMethod() == 0 {
			v.Set(reflect.ValueOf(text))
		}
	}
}

// TestPagesAsHTMLTemplate checks that all pages come out byte for byte as with html/template, whatever names the cluster has.
func TestPagesAsHTMLTemplate(t *testing.T) {
	expected := twin(t)
	for _, text := range []string{"plain", `"><script>alert(1)</script>`, `' onload='x`, "javascript:alert(1)", "a b&c=d#é+%zz", ""} {
		for _, full := range []bool{true, false} {
			shows := &shown{}
			fill(reflect.ValueOf(shows).Elem(), text, full, 0)
			p := &page{shown: shows}
			fill(reflect.ValueOf(p).Elem(), text, full, 0)
			p.shown = shows
			report := &Report{}
			fill(reflect.ValueOf(report).Elem(), text, full, 0)
			report.Sections = []section{{text, shows}, {"b", shows}}
			login := &entryPage{}
			fill(reflect.ValueOf(login).Elem(), text, full, 0)
			for name, data := range map[string]any{"page": p, "report": report, "entry": login} {
				var got, want bytes.Buffer
				if err := expected.ExecuteTemplate(&want, name, data); err != nil {
					t.Fatalf("html/template: %v", err)
				}
				if err := templates.Execute(&got, name, data); err != nil {
					t.Fatal(err)
				}
				if got.Len() < 500 {
					t.Errorf("%s has only %d bytes: %s", name, got.Len(), got.String())
				}
				if diff := cmp.Diff(strings.Split(want.String(), "\n"), strings.Split(got.String(), "\n")); diff != "" {
					t.Errorf("%s, %q, %v (-html/template +here):\n%s", name, text, full, diff)
				}
			}
		}
	}
}
