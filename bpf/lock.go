// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// ErrInUse: another process holds the port.
var ErrInUse = errors.New("in use by another xskfwd process")

// ErrNoPins: the pin directory cannot be made or written, as the bpffs is
// read-only or not ours to write. The same [Options] without PinDir may work.
var ErrNoPins = errors.New("no pins possible")

// lockTries bounds the races between one process that locks a directory and
// others that remove it. Each lost race means that another one finished.
const lockTries = 8

// dirLock is an flock on a pin directory. The kernel drops it with the process.
type dirLock struct {
	dir  string
	file *os.File
}

// lockDir makes the directory if need be and locks it without waiting.
func lockDir(dir string) (*dirLock, error) {
	for range lockTries {
		err := os.MkdirAll(dir, 0o700)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the directory above it was removed meanwhile
		}
		if err != nil {
			return nil, unwritable(fmt.Errorf("make pin directory: %w", err))
		}
		l, err := tryLock(dir)
		if l != nil || err != nil {
			return l, err
		}
	}
	return nil, fmt.Errorf("pin directory %s: removed again and again: %w", dir, ErrInUse)
}

// lockPatience is how long the start of a daemon waits for a lock, since
// neighbours that start (gather) and DetachAll hold it for a few file operations.
// Shorter, and a busy host refuses a free port; longer only delays the refusal
// of one that is in use.
const lockPatience = 500 * time.Millisecond

// lockToPin is lockDir for one who will write there and stay.
func lockToPin(dir string) (*dirLock, error) {
	l, err := lockDir(dir)
	for start := time.Now(); errors.Is(err, ErrInUse) && time.Since(start) < lockPatience; {
		time.Sleep(lockPatience / 50)
		l, err = lockDir(dir)
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		err = unwritable(fmt.Errorf("write to pin directory %s: %w", dir, err))
		return nil, errors.Join(err, l.file.Close()) // nor can it be removed
	}
	return l, nil
}

// unwritable adds ErrNoPins where nothing but the pins is in question.
func unwritable(err error) error {
	if errors.Is(err, unix.EROFS) || errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: %w", ErrNoPins, err)
	}
	return err
}

// tryLock gives nil when the directory was removed or replaced meanwhile.
func tryLock(dir string) (*dirLock, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, unwritable(fmt.Errorf("open pin directory %s: %w", dir, err))
	}
	l := &dirLock{dir: dir, file: os.NewFile(uintptr(fd), dir)}
	same, err := l.take()
	if !same || err != nil {
		return nil, errors.Join(err, l.file.Close())
	}
	return l, nil
}

func (l *dirLock) take() (same bool, err error) {
	fd := int(l.file.Fd())
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return false, fmt.Errorf("pin directory %s: %w", l.dir, err)
	}
	if int64(fs.Type) != unix.BPF_FS_MAGIC {
		return false, fmt.Errorf("pin directory %s: not on a bpf file system", l.dir)
	}
	err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, fmt.Errorf("pin directory %s: %w", l.dir, ErrInUse)
	}
	if err != nil {
		return false, fmt.Errorf("lock pin directory %s: %w", l.dir, err)
	}
	held, err := l.file.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Lstat(l.dir)
	return err == nil && os.SameFile(held, named), nil
}

// release removes the directory when nothing is left in it, and the root above
// it when this was the last port.
func (l *dirLock) release() error {
	err := removeIfEmpty(l.dir)
	if root := filepath.Dir(l.dir); filepath.Base(root) == rootName {
		err = errors.Join(err, removeIfEmpty(root))
	}
	return errors.Join(err, l.file.Close())
}
