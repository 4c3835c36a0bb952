package docs

import (
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/go/packages"
)

// number is one line of testdata/numbers.txt.
type number struct {
	line                   int
	page, pkg, expr, words string
}

// TestNumbers: the numbers that the documentation states are those of the code (testdata/numbers.txt).
func TestNumbers(t *testing.T) {
	list := readNumbers(t)
	scopes := loadScopes(t, list)
	for _, n := range list {
		value, err := scopes[n.pkg].value(n.expr)
		if err != nil {
			t.Errorf("numbers.txt:%d: %s %s: %v", n.line, n.pkg, n.expr, err)
			continue
		}
		page, err := os.ReadFile(filepath.Join(root, n.page))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), n.words) {
			t.Errorf("numbers.txt:%d: %s no longer says %q", n.line, n.page, n.words)
		}
		if forms := formsOf(value); !says(n.words, forms) {
			t.Errorf("numbers.txt:%d: %s says %q, and %s of %s is %s", n.line, n.page, n.words, n.expr, n.pkg, forms[0])
		}
	}
}

// TestNumberForms: a sentence that names another number is found.
func TestNumberForms(t *testing.T) {
	duration := types.Typ[types.Int64]
	for _, c := range []struct {
		value types.TypeAndValue
		words string
		want  bool
	}{
		{plain(48), "up to 48 nodes", true},
		{plain(48), "up to 480 nodes", false},
		{plain(48), "up to 12 nodes", false},
		{plain(20), "twenty times as much", true},
		{plain(10), "twenty times as much", false},
		{plain(20_000_000), "the default of 20,000,000", true},
		{plain(1_000_000), "a million pods", true},
		{plain(1 << 30), "beyond 1 GiB", true},
		{plain(1 << 20), "beyond 1 GiB", false},
		{timed(time.Minute), "for a minute", true},
		{timed(10 * time.Minute), "for a minute", false},
		{timed(10 * time.Minute), "within ten minutes", true},
		{timed(30 * time.Minute), "half an hour", true},
		{timed(24 * time.Hour), "for a day", true},
		{types.TypeAndValue{Type: duration, Value: constant.MakeFloat64(1.5)}, "more than 1.5 times", true},
	} {
		if got := says(c.words, formsOf(c.value)); got != c.want {
			t.Errorf("%q names %v: %t, want %t", c.words, c.value.Value, got, c.want)
		}
	}
}

func plain(n int64) types.TypeAndValue {
	return types.TypeAndValue{Type: types.Typ[types.UntypedInt], Value: constant.MakeInt64(n)}
}

func timed(d time.Duration) types.TypeAndValue {
	named := types.NewNamed(types.NewTypeName(token.NoPos, types.NewPackage("time", "time"), "Duration", nil), types.Typ[types.Int64], nil)
	return types.TypeAndValue{Type: named, Value: constant.MakeInt64(int64(d))}
}

// readNumbers reads testdata/numbers.txt.
func readNumbers(t *testing.T) []number {
	t.Helper()
	text, err := os.ReadFile("testdata/numbers.txt")
	if err != nil {
		t.Fatal(err)
	}
	var list []number
	page := ""
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case strings.HasPrefix(line, "["):
			page = strings.Trim(line, "[]")
			continue
		}
		place, words, found := strings.Cut(line, " | ")
		pkg, expr, two := strings.Cut(place, " ")
		if !found || !two || page == "" {
			t.Fatalf("numbers.txt:%d: want \"package constant | words\" below a [page]", i+1)
		}
		list = append(list, number{i + 1, page, pkg, expr, words})
	}
	return list
}

// scope is a package whose constants are known.
type scope struct {
	files *token.FileSet
	pkg   *types.Package
}

func loadScopes(t *testing.T, list []number) map[string]scope {
	t.Helper()
	var patterns []string
	for _, n := range list {
		if pattern := "./" + n.pkg; !slices.Contains(patterns, pattern) {
			patterns = append(patterns, pattern)
		}
	}
	config := &packages.Config{Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
		packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo, Dir: root, Fset: token.NewFileSet()}
	loaded, err := packages.Load(config, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	scopes := map[string]scope{}
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			t.Fatalf("loading %s: %v", p.PkgPath, p.Errors[0])
		}
		for _, pattern := range patterns {
			if strings.HasSuffix(p.PkgPath, pattern[1:]) {
				scopes[pattern[2:]] = scope{config.Fset, p.Types}
			}
		}
	}
	return scopes
}

// value computes a constant expression in the package.
func (s scope) value(expr string) (types.TypeAndValue, error) {
	if s.pkg == nil {
		return types.TypeAndValue{}, fmt.Errorf("no such package")
	}
	v, err := types.Eval(s.files, s.pkg, token.NoPos, expr)
	if err == nil && v.Value == nil {
		err = fmt.Errorf("not a constant")
	}
	return v, err
}

var numerals = []string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}

var ordinals = []string{"", "first", "second", "third", "fourth", "fifth"}

// formsOf returns the texts that name a number, digits first.
func formsOf(v types.TypeAndValue) []string {
	if named, is := v.Type.(*types.Named); is && named.Obj().Name() == "Duration" {
		nanoseconds, _ := constant.Int64Val(v.Value)
		return durationForms(time.Duration(nanoseconds))
	}
	n, whole := constant.Int64Val(constant.ToInt(v.Value))
	if !whole {
		f, _ := constant.Float64Val(v.Value)
		return []string{strconv.FormatFloat(f, 'g', -1, 64)}
	}
	forms := countForms(n)
	for shift, unit := range map[int]string{10: "KiB", 20: "MiB", 30: "GiB"} {
		if n > 0 && n%(1<<shift) == 0 {
			forms = append(forms, fmt.Sprintf("%d %s", n>>shift, unit))
		}
	}
	return forms
}

func countForms(n int64) []string {
	digits := strconv.FormatInt(n, 10)
	forms := []string{digits}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	forms = append(forms, digits)
	switch {
	case n >= 0 && n < int64(len(numerals)):
		forms = append(forms, numerals[n])
		if n > 0 && n < int64(len(ordinals)) {
			forms = append(forms, ordinals[n])
		}
	case n == 20:
		forms = append(forms, "twenty")
	case n == 1_000_000:
		forms = append(forms, "a million")
	}
	return forms
}

func durationForms(d time.Duration) []string {
	forms := []string{d.String()}
	for _, u := range []struct {
		length              time.Duration
		name, article, sign string
	}{{24 * time.Hour, "day", "a", ""}, {time.Hour, "hour", "an", "h"}, {time.Minute, "minute", "a", "m"}, {time.Second, "second", "a", "s"}} {
		if d < u.length || d%u.length != 0 {
			continue
		}
		n := int64(d / u.length)
		if n == 1 {
			forms = append(forms, u.article+" "+u.name, "one "+u.name, "1"+u.sign)
			continue
		}
		for _, count := range countForms(n) {
			forms = append(forms, count+" "+u.name+"s", count+u.sign, count+" "+u.sign)
		}
	}
	if d == 30*time.Minute {
		forms = append(forms, "half an hour")
	}
	return forms
}

// says reports whether the words contain one of the forms as a whole.
func says(words string, forms []string) bool {
	return slices.ContainsFunc(forms, func(form string) bool {
		return regexp.MustCompile(`(^|[^\w.,])` + regexp.QuoteMeta(strings.ToLower(form)) + `($|[^\w.,]|[.,]($|\D))`).MatchString(strings.ToLower(words))
	})
}
