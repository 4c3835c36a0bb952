package download

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
)

// unpack writes the members of a gzipped tar archive into a folder, as executables with the names that they have in the map.
// If it fails, it leaves none.
func unpack(archive io.ReadSeeker, members map[string]string, folder string) (err error) {
	var written []string
	defer func() {
		if err != nil {
			for _, file := range written {
				_ = os.Remove(file)
			}
		}
	}()
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return err
	}
	plain, err := gzip.NewReader(bufio.NewReaderSize(archive, 1<<20))
	if err != nil {
		return err
	}
	files := tar.NewReader(plain)
	for len(written) < len(members) {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("it has %d of %d executables", len(written), len(members))
		}
		if err != nil {
			return err
		}
		name, wanted := members[path.Clean(header.Name)]
		if !wanted || header.Typeflag != tar.TypeReg {
			continue
		}
		file := filepath.Join(folder, name)
		written = append(written, file)
		if err := write(file, files); err != nil {
			return err
		}
	}
	return nil
}

func write(file string, content io.Reader) error {
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	return errors.Join(err, out.Close())
}
