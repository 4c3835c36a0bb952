package offline

import (
	"context"
	"io"
	"time"
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
}

// Read reads everything and prepares it for decisions.
func (s *Source) Read(ctx context.Context, p Policy) (*InputSet, error) {
	o, err := newManifests()
	if err != nil {
		return nil, err
	}
	o.keep = s.Keep
	if s.MaxPods > 0 {
		o.mostPods = s.MaxPods
	}
	if o.home = s.Cluster.Namespace; s.Live {
		o.home = s.Cluster.Home()
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
	return newInputSet(o, now, p)
}
