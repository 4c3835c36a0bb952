package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pagesOfPaths are the pages that name files and folders without links.
var pagesOfPaths = []string{"docs/where.md", "docs/tour.md"}

var (
	quoted = regexp.MustCompile("`([^`\n]+)`")
	// pathLike matches what may be a path: no spaces, no calls, and no names of labels such as karpenter.sh/nodepool.
	pathLike = regexp.MustCompile(`^[A-Za-z0-9_*][A-Za-z0-9_*./{},-]*$`)
	fileLike = regexp.MustCompile(`\.(go|md|txtar|ya?ml|json|tpl|txt|golden)$`)
	// placeholder matches names that stand for others: NAME.go.
	placeholder = regexp.MustCompile(`\b[A-Z]{3,}\b`)
)

// mentioned returns the paths in a text, and its files without a folder. Of a path that ends with a placeholder it is the
// folder.
func mentioned(text string) (paths, files []string) {
	for _, match := range quoted.FindAllStringSubmatch(text, -1) {
		token := match[1]
		if folder, _, found := strings.Cut(token, "/NAME"); found {
			token = folder
		}
		first, _, slash := strings.Cut(token, "/")
		switch {
		case !pathLike.MatchString(token), placeholder.MatchString(strings.TrimSuffix(token, ".md")):
		case slash && !strings.Contains(first, "."):
			paths = append(paths, strings.TrimSuffix(token, "/"))
		case !slash && token != "doc.go" && fileLike.MatchString(token): // each package has a doc.go
			files = append(files, token)
		}
	}
	return paths, files
}

// exists returns the folders among bases in which the path, which may have * and sets in braces, exists.
func exists(t *testing.T, name string, bases []string) (found []string) {
	t.Helper()
	if before, rest, set := strings.Cut(name, "{"); set {
		choices, after, _ := strings.Cut(rest, "}")
		found = bases
		for choice := range strings.SplitSeq(choices, ",") {
			found = exists(t, before+choice+after, found)
		}
		return found
	}
	for _, base := range bases {
		if all, err := filepath.Glob(filepath.Join(root, base, name)); err != nil {
			t.Fatalf("%s: %v", name, err)
		} else if len(all) > 0 {
			found = append(found, base)
		}
	}
	return found
}

// folders returns the folders of existing paths, with those above them.
func folders(t *testing.T, paths []string) []string {
	t.Helper()
	bases := []string{".", "internal", "docs"}
	for _, name := range paths {
		found := exists(t, name, bases[:3])
		if len(found) == 0 {
			continue
		}
		folder := path.Join(found[0], name)
		if info, err := os.Stat(filepath.Join(root, folder)); err != nil || !info.IsDir() {
			folder = path.Dir(folder)
		}
		for ; folder != "." && folder != "internal"; folder = path.Dir(folder) {
			if !slices.Contains(bases, folder) {
				bases = append(bases, folder)
			}
		}
	}
	return bases
}

// TestPaths checks that the paths that where.md and tour.md name exist: from the root, from internal/, or from a folder
// that the same row of where.md names, or tour.md anywhere.
func TestPaths(t *testing.T) {
	checked := 0
	for _, page := range pagesOfPaths {
		parts := []string{read(t, page)}
		if page == "docs/where.md" {
			parts = strings.Split(parts[0], "\n")
		}
		for _, part := range parts {
			paths, files := mentioned(part)
			bases := folders(t, paths)
			for _, name := range slices.Concat(paths, files) {
				if checked++; len(exists(t, name, bases)) == 0 {
					t.Errorf("%s names %s, which is in none of %v\n%.100s", page, name, bases, strings.TrimSpace(part))
				}
			}
		}
	}
	if checked < 300 {
		t.Errorf("%d paths are checked; this test fails to read them", checked)
	}
}
