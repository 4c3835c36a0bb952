package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// story is a scenario of the demo. The cluster and the controller are the same for all.
type story struct {
	opening  string // start of the first line; empty for the number of pods
	manifest []byte
	step     string // name of the step that applies the manifest
	applied  string // message of that step
	flags    []string
	// cloud is the provider; empty for kwok. before, if it is set, is a step before the controller starts.
	cloud  string
	before func(*demo, context.Context) (string, error)
	play   func(*demo, context.Context) error
}

const scaleStoryName, consolidationStoryName = "scale", "consolidation"

// stories returns the stories by their names for --story.
func stories() map[string]story {
	return map[string]story{
		scaleStoryName: {manifest: demoManifest, step: "node pool",
			applied: demoPool + ": linux, amd64, spot or on-demand, any size", play: (*demo).scaleUpAndDown},
		consolidationStoryName: consolidationStory(),
		awsStoryName:           awsStory(),
		capacityStoryName:      capacityStory(),
	}
}

// storyNames returns the names of the stories for --story. The story scale of AWS is selected by --cloud-provider.
func storyNames() string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(stories())), func(name string) bool { return name == awsStoryName })
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// scaleUpAndDown is the main story.
func (d *demo) scaleUpAndDown(ctx context.Context) error {
	if err := d.scaleUp(ctx); err != nil {
		return fmt.Errorf("scale up: %w", err)
	}
	if d.keep {
		return d.leave()
	}
	if err := d.capture(ctx); err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	if err := d.scaleDown(ctx); err != nil {
		return fmt.Errorf("scale down: %w", err)
	}
	return nil
}
