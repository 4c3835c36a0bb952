package v1

import (
	"fmt"
	"strings"
)

// VolumeSizes returns the expressions of AnnotationVolumeSize by device, nil without the annotation. An error describes
// what is wrong with its text.
func (c *EC2NodeClass) VolumeSizes() (map[string]string, error) {
	text, set := c.Annotations[AnnotationVolumeSize]
	if !set {
		return nil, nil
	}
	var sizes map[string]string
	for pair := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		device, size, ok := strings.Cut(pair, "=")
		device, size = strings.TrimSpace(device), strings.TrimSpace(size)
		if !ok || device == "" || size == "" || sizes[device] != "" {
			return nil, fmt.Errorf("metadata.annotations[%s]: has %q, want one DEVICE=EXPRESSION for each device, such as "+
				"/dev/xvda=20 + 2 * vcpus, "+
				"separated by semicolons or lines", AnnotationVolumeSize, strings.TrimSpace(pair))
		}
		if sizes == nil {
			sizes = map[string]string{}
		}
		sizes[device] = size
	}
	return sizes, nil
}
