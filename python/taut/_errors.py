"""What the library could not do, as exceptions: one class per kind of taut_status."""


class Error(Exception):
    """What the library could not do, in its own one line.  All errors of this package are of this class."""


class InputError(Error, ValueError):
    """An argument, a recipe, or data that do not fit the model."""


class FileError(Error, OSError):
    """A file is missing, damaged, or not what it should be."""


class NotFiniteError(Error, ArithmeticError):
    """A NaN or an infinity was met."""


class DeviceError(Error):
    """The device failed, or there is none."""


class NoMemoryError(Error, MemoryError):
    """Memory ran out."""


STATUS = (None, NoMemoryError, FileError, InputError, InputError, NotFiniteError, DeviceError, InputError)  # taut_status
