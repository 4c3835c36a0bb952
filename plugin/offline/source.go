package offline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Source selects the input of a decision: files, a live cluster, or both.
type Source struct {
	// Paths are files and folders of manifests and captures, - for Stdin.
	Paths []string
	Stdin io.Reader
	// InstanceTypes is a file of instance types and prices; empty for those of a folder or of the cloud provider.
	InstanceTypes string
	// Live reads the cluster too. The settings of Cluster about clouds apply to files as well.
	Live    bool
	Cluster *Cluster
	// Now is the time of the decision; zero for the current time if Live is set, else the newest timestamp of the input.
	Now time.Time
	// MaxPods is the number of pods beyond which workloads are not expanded; 0 means MostPods.
	MaxPods int
	// Keep keeps the original objects, for a capture.
	Keep bool

	// over are files whose objects take the place of those of the name, and gone identities that are left out unless
	// over has them.
	over []string
	gone map[string]string
	// compare keeps the objects by their identity, to compare them with those of another input.
	compare bool
}

// ReadBoth reads two inputs that differ in the objects of files: the first with those of old, the second with those of
// now, each in the place of the objects of the name that Paths and the cluster have. Objects of old that now does not
// have are not in the second. The cluster is read once. A file that cannot be read as a whole is an error.
func (s *Source) ReadBoth(ctx context.Context, p Policy, old, now []string) (before, after *Manifests, err error) {
	first := *s
	if s.Live {
		cluster := *s.Cluster
		cluster.same = &sameLists{known: map[string]client.ObjectList{}}
		if first.Cluster = &cluster; first.Now.IsZero() {
			first.Now = time.Now()
		}
	}
	var stdin []byte
	if slices.Contains(slices.Concat(s.Paths, old, now), "-") {
		if stdin, err = ReadText(s.Stdin, 0, LargestFile); err != nil {
			return nil, nil, inputErrorf("standard input: %w", err)
		}
	}
	first.compare = true
	second := first
	first.over, first.Stdin = old, bytes.NewReader(stdin)
	if before, err = first.Read(ctx, p); err != nil {
		return nil, nil, err
	}
	second.over, second.gone, second.Stdin = now, before.over, bytes.NewReader(stdin)
	if after, err = second.Read(ctx, p); err != nil {
		return nil, nil, err
	}
	for _, pool := range after.pools { // owners are compared by UID
		if was, live := before.pool(pool.object.Name); was != nil {
			pool.object.UID = was.UID
			if pauses := was.Annotations[karpv1.AnnotationPauses]; live && pauses != "" { // written by the controller
				annotate(pool.object, karpv1.AnnotationPauses, pauses)
			}
		}
	}
	after.changes = changesBetween(before, after, s.Live && len(old) == 0)
	before.taken, after.taken = nil, nil
	if len(old) > 0 {
		before.applyDrift(nil)
	}
	after.applyDrift(before)
	return before, after, nil
}

// Read reads everything and prepares it for decisions.
func (s *Source) Read(ctx context.Context, p Policy) (*Manifests, error) {
	o, err := newManifests()
	if err != nil {
		return nil, err
	}
	o.keep, o.wantsUsage = s.Keep, s.Cluster.Usage
	if s.compare {
		o.taken = map[string]metav1.Object{}
	}
	if s.MaxPods > 0 {
		o.mostPods = s.MaxPods
	}
	if o.home = s.Cluster.Namespace; s.Live {
		o.home = s.Cluster.Home()
	}
	if err := o.readOver(s); err != nil {
		return nil, err
	}
	for _, path := range s.Paths {
		if !o.readPath(path, s.Stdin) && s.Live { // a cluster without the file is another question
			return nil, inputErrorf("%w", o.Problems[len(o.Problems)-1])
		}
	}
	now := s.Now
	if s.Live {
		if now.IsZero() {
			now = time.Now()
		}
		now = now.Truncate(time.Second)
		err = s.Cluster.read(ctx, o, s.InstanceTypes)
	} else {
		err = s.Cluster.stockFiles(ctx, o, s.InstanceTypes)
	}
	if err != nil {
		return nil, err
	}
	return o, o.complete(now, p)
}

// nameOf returns how errors name a path.
func nameOf(path string) string {
	if path == "-" {
		return "standard input"
	}
	return path
}

// readOver reads the files whose objects take precedence over all others. One without any object is an error, like an
// empty folder: the program that writes it may have failed.
func (o *Manifests) readOver(s *Source) error {
	for _, path := range s.over {
		before := o.documents
		if o.readPath(path, s.Stdin); o.documents == before && len(o.Problems) == 0 {
			o.problem(fmt.Errorf("%s: has no object, want manifests; a List without items says that there are none", nameOf(path)))
		}
	}
	if len(o.Problems) > 0 {
		return inputErrorf("%w", errors.Join(o.Problems...))
	}
	o.over = maps.Clone(o.seen)
	for identity := range s.gone {
		if o.seen[identity] == "" {
			o.seen[identity], o.over[identity] = "left out", ""
		}
	}
	return nil
}
